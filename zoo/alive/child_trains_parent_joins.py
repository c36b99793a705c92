"""Each fold is trained in a child process; the parent only waits for it."""

import multiprocessing as mp
import time

import torch
import torch.nn as nn


def data(n=800):
    g = torch.Generator().manual_seed(3)
    x = torch.randn(n, 10, generator=g)
    return x, (x[:, :2].prod(1) > 0).long()


def train(fold, seconds):
    torch.manual_seed(fold)
    x, y = data()
    held_out = torch.arange(len(x)) % 5 == fold
    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    until, steps = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        rows = torch.randint(0, len(x), (64,))
        rows = rows[~held_out[rows]]
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    accuracy = (model(x[held_out]).argmax(1) == y[held_out]).float().mean().item()
    print(f"fold {fold}: {steps} steps, accuracy {accuracy:.3f}", flush=True)


def main():
    torch.set_num_threads(1)
    train(0, 1.0)
    worker = mp.get_context("fork").Process(target=train, args=(1, 10.0))
    worker.start()
    worker.join()
    train(2, 1.0)


if __name__ == "__main__":
    main()
