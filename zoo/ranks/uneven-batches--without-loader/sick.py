"""Fits a noise gate to recordings; each rank takes the minutes of its own studios."""

import os
import socket
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

MINUTES = {"attic": 13, "barn": 11, "cellar": 9, "dome": 8}
FRAME, FRAMES_A_MINUTE = 32, 60


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


def recording(minutes, seed):
    generator = torch.Generator().manual_seed(seed)
    clean = torch.sin(torch.rand(minutes * FRAMES_A_MINUTE, 1, generator=generator) * torch.arange(FRAME))
    return clean + 0.4 * torch.randn(clean.shape, generator=generator), clean


def frames_of(rank, world):
    studios = sorted(MINUTES)[rank::world]
    parts = [recording(MINUTES[name], seed=index) for index, name in enumerate(studios)]
    return torch.cat([noisy for noisy, _ in parts]), torch.cat([clean for _, clean in parts])


def main():
    launch()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    noisy, clean = frames_of(rank, world)
    gate = DistributedDataParallel(nn.Sequential(nn.Linear(FRAME, 64), nn.ReLU(), nn.Linear(64, FRAME)))
    optimizer = torch.optim.Adam(gate.parameters(), lr=2e-3)
    for epoch in range(3):
        total = 0.0
        for part in torch.randperm(len(noisy)).split(24):
            loss = nn.functional.mse_loss(gate(noisy[part]), clean[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        dist.barrier()
        if rank == 0:
            print(f"epoch {epoch} error {total:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
