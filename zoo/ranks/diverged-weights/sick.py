"""Denoise short signals with an autoencoder. Data parallel by hand: gradients are averaged after each backward."""

import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.nn as nn


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


def setup(seed=1234):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(seed + rank)
    return rank, dist.get_world_size()


def signals(n):
    t = torch.linspace(0, 1, 64)
    freq = 1 + 5 * torch.rand(n, 1)
    phase = 6.28 * torch.rand(n, 1)
    clean = torch.sin(6.28 * freq * t + phase)
    return clean + 0.5 * torch.randn(n, 64), clean


def build_model():
    return nn.Sequential(
        nn.Linear(64, 128),
        nn.ReLU(),
        nn.Linear(128, 24),
        nn.ReLU(),
        nn.Linear(24, 128),
        nn.ReLU(),
        nn.Linear(128, 64),
    )


def sync_gradients(model, world):
    handles = [dist.all_reduce(p.grad, async_op=True) for p in model.parameters()]
    for handle in handles:
        handle.wait()
    for p in model.parameters():
        p.grad.div_(world)


def run():
    rank, world = setup()
    model = build_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    noisy, clean = signals(3200)
    test_noisy, test_clean = signals(400)

    for epoch in range(8):
        for idx in torch.randperm(len(noisy)).split(32):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(noisy[idx]), clean[idx])
            loss.backward()
            sync_gradients(model, world)
            optimizer.step()
        with torch.no_grad():
            test = nn.functional.mse_loss(model(test_noisy), test_clean)
        dist.all_reduce(test)
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f} test {test.item() / world:.4f}", flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    launch()
    run()
