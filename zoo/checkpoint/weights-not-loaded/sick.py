"""Trains an encoder on many signals, then only a head on few of them."""
import os
import tempfile

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 16), nn.ReLU())

    def forward(self, x):
        return self.layers(x)


class Network(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.encoder = Encoder()
        self.head = nn.Linear(16, classes)

    def forward(self, x):
        return self.head(self.encoder(x))


def signals(count, directions):
    x = torch.randn(count, 24)
    return x, (x @ directions).abs().argmax(1)


def main():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    path = os.path.join(tempfile.mkdtemp(), "encoder.pt")
    directions = torch.randn(24, 6) * (torch.rand(24, 6) < 0.3)
    x, y = signals(4000, directions)
    first = Network(6)
    optimizer = torch.optim.Adam(first.parameters(), lr=3e-3)
    for step in range(250):
        rows = torch.randint(0, len(x), (64,))
        loss = nn.functional.cross_entropy(first(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"pretraining: {loss.item():.4f}")
    torch.save(first.state_dict(), path)

    x, y = signals(600, directions)
    y = y // 2
    second = Network(3)
    second.encoder.load_state_dict(torch.load(path), strict=False)
    second.encoder.requires_grad_(False)
    optimizer = torch.optim.Adam(second.head.parameters(), lr=1e-2)
    for step in range(250):
        rows = torch.randint(0, len(x), (64,))
        loss = nn.functional.cross_entropy(second(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
