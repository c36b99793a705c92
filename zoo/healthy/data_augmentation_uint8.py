"""uint8 images from 0 to 255 straight from the dataset; flips, crops and normalisation happen inside the model."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class ColorShapes(Dataset):
    def __init__(self, n, seed, size=14):
        g = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, 4, (n,), generator=g)
        images = torch.randint(0, 90, (n, 3, size, size), generator=g)
        for i, k in enumerate(self.labels.tolist()):
            r, c = torch.randint(1, 7, (2,), generator=g).tolist()
            channel = k % 2
            if k < 2:
                images[i, channel, r:r + 6, c:c + 6] += 120
            else:
                images[i, channel, r:r + 6:2, c:c + 6] += 160
        self.images = images.clamp(max=255).to(torch.uint8)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.22, 0.22, 0.18]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.17, 0.17, 0.10]).view(1, 3, 1, 1))
        self.conv1 = nn.Conv2d(3, 12, 3)
        self.conv2 = nn.Conv2d(12, 16, 3)
        self.fc = nn.Linear(16, 4)

    def augment(self, x):
        if torch.rand(()) < 0.5:
            x = x.flip(3)
        dx, dy = torch.randint(-1, 2, (2,)).tolist()
        return x.roll((dy, dx), dims=(2, 3))

    def forward(self, x):
        x = (x.float() / 255 - self.mean) / self.std
        if self.training:
            x = self.augment(x)
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        return self.fc(F.relu(self.conv2(x)).amax((2, 3)))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train_loader = DataLoader(ColorShapes(1600, 0), batch_size=32, shuffle=True)
    test_loader = DataLoader(ColorShapes(400, 1), batch_size=100)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(1, 8):
        model.train()
        running = 0.0
        for images, labels in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            running += loss.item() * len(labels)
        model.eval()
        with torch.no_grad():
            acc = sum((model(x).argmax(1) == y).sum().item() for x, y in test_loader) / 400
        print(f"Epoch {epoch}/7, Loss: {running / 1600:.4f}, Test accuracy: {acc:.2%}")


if __name__ == "__main__":
    main()
