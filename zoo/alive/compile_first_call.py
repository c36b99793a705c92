"""A compiled model: the first call takes many seconds, the rest is quick."""

import time

import torch
import torch.nn as nn
import torch.nn.functional as F

DEPTH = 20


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def run(model, optimizer, steps):
    for _ in range(steps):
        x = torch.randn(32, 24)
        loss = F.mse_loss(model(x), x.sin())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(*(Block(24) for _ in range(DEPTH)), nn.Linear(24, 24))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    print(f"eager: {run(model, optimizer, 30):.4f}", flush=True)
    compiled = torch.compile(model, backend="aot_eager")
    began = time.monotonic()
    run(compiled, optimizer, 1)
    print(f"first compiled step: {time.monotonic() - began:.1f} s", flush=True)
    print(f"compiled: {run(compiled, optimizer, 30):.4f}", flush=True)


if __name__ == "__main__":
    main()
