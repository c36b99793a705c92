"""Residual MLP with activation checkpointing: the forward of every block runs twice per step."""
import argparse

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(self.down(torch.nn.functional.gelu(self.up(self.norm(x)))))


class DeepNet(nn.Module):
    def __init__(self, dim=48, depth=5, use_checkpoint=True):
        super().__init__()
        self.embed = nn.Linear(10, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.head = nn.Linear(dim, 4)
        self.use_checkpoint = use_checkpoint

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            if self.use_checkpoint and self.training:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.head(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-checkpoint", action="store_true")
    parser.add_argument("--iters", type=int, default=300)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.randn(3000, 10)
    y = (x[:, 0] * x[:, 1] > 0).long() * 2 + (x[:, 2] + x[:, 3] > 0).long()
    model = DeepNet(use_checkpoint=not args.no_checkpoint)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    for it in range(args.iters):
        model.train()
        idx = torch.randint(0, 2500, (64,))
        loss = criterion(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if it % 50 == 0 or it == args.iters - 1:
            model.eval()
            with torch.no_grad():
                acc = (model(x[2500:]).argmax(1) == y[2500:]).float().mean().item()
            print(f"it {it:4d} train_loss {loss.item():.4f} val_acc {acc:.3f}")


if __name__ == "__main__":
    main()
