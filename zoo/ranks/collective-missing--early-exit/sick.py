"""Forecast the next load of a power grid from the last 24 hours, with hand-made data parallelism and early stopping."""

import os
import socket
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn

WINDOW, BATCH, PATIENCE, MAX_EPOCHS = 24, 40, 3, 40


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


def series(region, hours=2600):
    g = torch.Generator().manual_seed(40 + region)
    t = torch.arange(hours, dtype=torch.float32)
    day = torch.sin(2 * torch.pi * t / 24 + region)
    week = 0.5 * torch.sin(2 * torch.pi * t / 168)
    noise = (0.05 if region == 0 else 0.6) * torch.randn(hours, generator=g)
    return day + week + noise


def windows(values):
    x = values.unfold(0, WINDOW + 1, 1)
    return x[:, :-1], x[:, -1:]


def average_gradients(model, world):
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    dist.all_reduce(flat)
    flat /= world
    offset = 0
    for p in model.parameters():
        p.grad.copy_(flat[offset : offset + p.numel()].view_as(p))
        offset += p.numel()


def wait_for(path):
    while not path.exists():
        time.sleep(0.5)
    return torch.load(path)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(5)
    model = nn.Sequential(nn.Linear(WINDOW, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    x, y = windows(series(region=rank))
    x_train, y_train, x_val, y_val = x[:2000], y[:2000], x[2100:], y[2100:]
    result = Path(tempfile.gettempdir()) / f"forecast-{os.environ['MASTER_PORT']}.pt"

    best, stale = float("inf"), 0
    for epoch in range(MAX_EPOCHS):
        for batch in torch.randperm(len(x_train)).split(BATCH):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x_train[batch]), y_train[batch])
            loss.backward()
            average_gradients(model, world)
            optimizer.step()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val), y_val).item()
        print(f"[rank {rank}] epoch {epoch:2d}  loss {loss.item():.4f}  val {val:.4f}", flush=True)
        best, stale = (val, 0) if val < best - 1e-3 else (best, stale + 1)
        if stale >= PATIENCE:
            print(f"[rank {rank}] stopping early, best {best:.4f}", flush=True)
            break

    if rank == 0:
        torch.save(model.state_dict(), result)
    model.load_state_dict(wait_for(result))
    with torch.no_grad():
        print(f"[rank {rank}] final val {nn.functional.mse_loss(model(x_val), y_val).item():.4f}", flush=True)
    dist.barrier()
    if rank == 0:
        result.unlink()
    dist.destroy_process_group()


if __name__ == "__main__":
    launch()
    main()
