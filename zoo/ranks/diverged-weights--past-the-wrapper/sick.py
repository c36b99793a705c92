"""Predict counts of visitors with a Poisson likelihood, on two ranks under DDP."""

import os
import socket
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def launch():
    """Start two ranks of this file, unless torchrun has started us."""
    if "RANK" in os.environ:
        return
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(port), *sys.argv])


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 48), nn.Tanh(), nn.Linear(48, 1))

    def forward(self, x, counts=None):
        rate = self.body(x).squeeze(-1)
        return rate if counts is None else nn.functional.poisson_nll_loss(rate, counts)

    def likelihood(self, x, counts):
        return nn.functional.poisson_nll_loss(self.body(x).squeeze(-1), counts)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(11)
    model = DistributedDataParallel(Counter())
    weights = torch.randn(10) / 4
    torch.manual_seed(100 + dist.get_rank())
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step in range(400):
        x = torch.randn(32, 10)
        counts = torch.poisson((x @ weights).exp())
        loss = model.module.likelihood(x, counts)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0 and dist.get_rank() == 0:
            print(f"step {step}: {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    launch()
    main()
