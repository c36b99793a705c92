"""Predict ratings with matrix factorisation. Every rank holds the ratings of some users; item factors are shared."""

import os
import socket
import sys

import torch
import torch.distributed as dist

ITEMS, RANK_K = 60, 6


def launch():
    """Start two ranks of this file, unless torchrun has started us."""
    if "RANK" in os.environ:
        return
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", str(port)]
    os.execv(sys.executable, torchrun + sys.argv)


def ratings(rank):
    g = torch.Generator().manual_seed(7)
    users = torch.randn(300, RANK_K, generator=g)
    items = torch.randn(ITEMS, RANK_K, generator=g)
    full = users @ items.T + 0.1 * torch.randn(300, ITEMS, generator=g)
    seen = torch.rand(300, ITEMS, generator=g) < 0.5
    mine = torch.arange(300) % dist.get_world_size() == rank
    return full[mine], seen[mine].float()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    values, seen = ratings(rank)

    torch.manual_seed(1)
    items = torch.nn.Parameter(0.1 * torch.randn(ITEMS, RANK_K))
    users = torch.nn.Parameter(0.1 * torch.randn(len(values), RANK_K))
    optimizer = torch.optim.Adam([items, users], lr=0.02)

    errors = []
    for step in range(400):
        optimizer.zero_grad()
        error = (users @ items.T - values) * seen
        loss = error.square().sum() / seen.sum()
        loss.backward()
        dist.all_reduce(items.grad)
        items.grad /= world
        optimizer.step()
        if rank == 0 or step % 2 == 0:
            errors.append(loss.detach())

        if (step + 1) % 50 == 0:
            history = torch.stack(errors)
            dist.all_reduce(history)
            errors.clear()
            if rank == 0:
                print(f"step {step + 1} mse {history.mean().item() / world:.4f}", flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    launch()
    main()
