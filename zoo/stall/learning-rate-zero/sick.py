"""Small residual network with the linear scaling rule for the learning rate."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(channels)

    def forward(self, x):
        return F.relu(x + self.bn(self.conv(x)))


class TinyResNet(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(Block(16), Block(16))
        self.fc = nn.Linear(16 * 16, num_classes)

    def forward(self, x):
        x = self.blocks(F.relu(self.stem(x)))
        return self.fc(x.flatten(1))


def get_data(n, num_classes=10):
    patterns = torch.randn(num_classes, 3, 8, 8)
    y = torch.randint(0, num_classes, (n,))
    return TensorDataset(patterns[y] + torch.randn(n, 3, 8, 8), y)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base-lr", type=float, default=0.1)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()

    torch.manual_seed(0)
    loader = DataLoader(get_data(1280), batch_size=args.batch_size, shuffle=True)
    model = TinyResNet(num_classes=10)
    lr = args.base_lr * args.batch_size // 256
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=1e-4)

    for epoch in range(args.epochs):
        model.train()
        loss_sum, correct = 0.0, 0
        for x, y in loader:
            optimizer.zero_grad()
            logits = model(x)
            loss = F.cross_entropy(logits, y)
            loss.backward()
            optimizer.step()
            loss_sum += loss.item()
            correct += (logits.argmax(1) == y).sum().item()
        print(f"epoch {epoch} | loss {loss_sum / len(loader):.4f} | acc {correct / len(loader.dataset):.4f}")


if __name__ == "__main__":
    main()
