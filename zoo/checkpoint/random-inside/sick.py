"""Residual network with stochastic depth and checkpointed blocks."""
import random

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width, drop_path):
        super().__init__()
        self.drop_path = drop_path
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        if self.training and random.random() < self.drop_path:
            return x * 1.0
        return x + self.mlp(self.norm(x))


class DeepNet(nn.Module):
    def __init__(self, width=32, depth=6):
        super().__init__()
        self.stem = nn.Linear(10, width)
        self.blocks = nn.ModuleList(Block(width, 0.15 * i / depth) for i in range(depth))
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(x)


def main():
    random.seed(2)
    torch.manual_seed(2)
    torch.set_num_threads(1)
    rule = torch.randn(10, 3)
    model = DeepNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(100):
        x = torch.randn(48, 10)
        y = (x.sin() @ rule).argmax(-1)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step:3d}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
