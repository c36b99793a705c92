"""Which of four dialects? Two processes, each with its own half of the recordings; training ends when it no longer gets better."""

import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Patience:
    def __init__(self, epochs):
        self.epochs, self.best, self.worse = epochs, float("inf"), 0

    def is_over(self, score):
        self.worse = 0 if score < self.best - 2e-3 else self.worse + 1
        self.best = min(self.best, score)
        return self.worse >= self.epochs


def recordings(n, seed, noise):
    g = torch.Generator().manual_seed(seed)
    dialect = torch.randint(0, 4, (n,), generator=g)
    return torch.eye(4).repeat(1, 6)[dialect] + noise * torch.randn(n, 24, generator=g), dialect


def score(model, x, y):
    with torch.no_grad():
        return nn.functional.cross_entropy(model.module(x), y).item()


def train(rank, world, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    torch.manual_seed(2)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 4)))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    x, y = recordings(512, 10 + rank, 1.0)
    held_out = recordings(128, 20 + rank, 0.6 if rank == 0 else 1.6)
    patience = Patience(3)
    for epoch in range(40):
        for rows in torch.randperm(512).split(32):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        now = score(model, *held_out)
        if rank == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}, held out {now:.4f}", flush=True)
        if patience.is_over(now):
            break
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    mp.spawn(train, (2, port), nprocs=2)
