"""LeNet-style network on synthetic 8-bit digits."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Digits8Bit(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        font = (torch.rand(10, 7, 5, generator=torch.Generator().manual_seed(0)) > 0.5)
        self.labels = torch.randint(10, (n,), generator=g)
        canvas = torch.randint(0, 90, (n, 12, 12), generator=g)
        for i, label in enumerate(self.labels.tolist()):
            dy, dx = torch.randint(0, 4, (2,), generator=g).tolist()
            canvas[i, 1 + dy:8 + dy, 2 + dx:7 + dx] += 160 * font[label]
        self.images = canvas.clamp(max=255).to(torch.uint8)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i].unsqueeze(0).float(), self.labels[i]


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3)
        self.conv2 = nn.Conv2d(12, 24, 3)
        self.fc1 = nn.Linear(24 * 3 * 3, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.relu(self.conv2(x))
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Digits8Bit(1600, seed=1), batch_size=32, shuffle=True)
    net = LeNet()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(6):
        hits, total = 0, 0.0
        for image, label in loader:
            optimizer.zero_grad()
            out = net(image)
            loss = F.cross_entropy(out, label)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(label)
            hits += (out.argmax(1) == label).sum().item()
        n = len(loader.dataset)
        print(f"Epoch {epoch + 1}\tloss {total / n:.4f}\tacc {hits / n:.3f}")


if __name__ == "__main__":
    main()
