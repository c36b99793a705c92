"""Small convnet on synthetic stripes: tell the orientation from the picture."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Stripes(Dataset):
    def __init__(self, n, size=12, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.targets = torch.randint(4, (n,), generator=g)
        theta = self.targets * (torch.pi / 4)
        phase = torch.rand(n, generator=g) * 6.28
        r = torch.arange(size).float()
        yy, xx = torch.meshgrid(r, r, indexing="ij")
        wave = xx * theta.cos().view(-1, 1, 1) + yy * theta.sin().view(-1, 1, 1)
        self.images = torch.sin(0.9 * wave + phase.view(-1, 1, 1)).unsqueeze(1)
        self.images += 0.3 * torch.randn(self.images.shape, generator=g)

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        return self.images[i], self.targets[i]


def block(cin, cout, stride=1):
    conv = nn.Conv2d(cin, cout, 3, stride=stride, padding=1)
    nn.init.kaiming_normal_(conv.weight)
    nn.init.zeros_(conv.bias)
    return nn.Sequential(conv, nn.Sigmoid())


class StripeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = block(1, 12)
        self.stage1 = nn.Sequential(block(12, 12), block(12, 12), block(12, 12))
        self.stage2 = nn.Sequential(block(12, 16, stride=2), block(16, 16), block(16, 16))
        self.stage3 = nn.Sequential(block(16, 16, stride=2), block(16, 16))
        self.fc = nn.Linear(16 * 3 * 3, 4)

    def forward(self, x):
        x = self.stem(x)
        x = self.stage3(self.stage2(self.stage1(x)))
        return self.fc(x.flatten(1))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Stripes(1024), batch_size=64, shuffle=True)
    net = StripeNet()
    optim = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for epoch in range(6):
        losses, hits = [], 0
        for img, target in loader:
            out = net(img)
            loss = F.cross_entropy(out, target)
            optim.zero_grad()
            loss.backward()
            optim.step()
            losses.append(loss.item())
            hits += int((out.argmax(1) == target).sum())
        print(f"Epoch {epoch}: train_loss={sum(losses) / len(losses):.4f} train_acc={hits / len(loader.dataset):.3f}")


if __name__ == "__main__":
    main()
