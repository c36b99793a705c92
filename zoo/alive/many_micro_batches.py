"""Gradients are accumulated over as many micro-batches as fit into ten seconds before each big step."""

import time

import torch
import torch.nn as nn
import torch.nn.functional as F


def micro_batch(n=16):
    x = torch.randn(n, 1, 20, 20)
    y = (x[:, 0, :10, :10].mean((1, 2)) > x[:, 0, 10:, 10:].mean((1, 2))).long()
    return x, y


def accumulate(model, seconds):
    until, count, total = time.monotonic() + seconds, 0, 0.0
    while time.monotonic() < until:
        x, y = micro_batch()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        total += loss.item()
        count += 1
    for p in model.parameters():
        p.grad /= count
    return total / count, count


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(512, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    for seconds in [0.05] * 20 + [10] + [0.05] * 10:
        optimizer.zero_grad()
        loss, count = accumulate(model, seconds)
        optimizer.step()
        if seconds > 1 or count % 5 == 0:
            print(f"{count} micro-batches: loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
