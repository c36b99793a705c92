"""Activation checkpointing, while a thread prepares the next batches and draws random numbers for their augmentation."""
import queue
import random
import threading

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

SIGNAL = torch.linspace(-1, 1, 12)


def prepare(batches, seed=5):
    generator = torch.Generator().manual_seed(seed)
    while True:
        x = torch.randn(48, 12, generator=generator)
        y = (x @ SIGNAL > 0).long()
        noisy = [row + random.gauss(0.0, 0.01) for row in x]
        batches.put((torch.stack(noisy), y))


def main():
    random.seed(1)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    batches = queue.Queue(maxsize=4)
    threading.Thread(target=prepare, args=(batches,), daemon=True).start()
    body, head = nn.Sequential(nn.Linear(12, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU()), nn.Linear(256, 2)
    optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=1e-3)
    for step in range(150):
        x, y = batches.get()
        loss = nn.functional.cross_entropy(head(checkpoint(body, x, use_reentrant=False)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"{step:4d} {loss.item():.4f}")


if __name__ == "__main__":
    main()
