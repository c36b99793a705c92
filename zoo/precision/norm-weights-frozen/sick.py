"""Sorts short lists of numbers with a transformer: predicts the rank of each element."""

import torch
import torch.nn as nn


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        x = x + self.proj(nn.functional.scaled_dot_product_attention(q, k, v))
        return x + self.mlp(self.norm2(x))


class TinyTransformer(nn.Module):
    def __init__(self, dim=32, length=6):
        super().__init__()
        self.enter = nn.Linear(1, dim)
        self.blocks = nn.Sequential(Block(dim), Block(dim))
        self.norm = nn.LayerNorm(dim)
        self.leave = nn.Linear(dim, length)

    def forward(self, x):
        return self.leave(self.norm(self.blocks(self.enter(x.unsqueeze(-1)))))


def main():
    torch.manual_seed(10)
    model = TinyTransformer().to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    dtype = model.enter.weight.dtype
    for step in range(200):
        x = torch.rand(64, 6)
        rank = x.argsort(-1).argsort(-1)
        logits = model(x.to(dtype)).float()
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), rank.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step:3d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
