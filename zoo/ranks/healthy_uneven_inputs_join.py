"""DDP on shards of different length: the shorter rank shadows the other's collectives through join()."""

import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

SHARDS = (1760, 1216)


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


def sensor_shard(count, seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 12, generator=g)
    y = torch.sin(x[:, :1] * 2) + x[:, 1:2] * x[:, 2:3] + 0.05 * torch.randn(count, 1, generator=g)
    return TensorDataset(x, y)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    shard = sensor_shard(SHARDS[rank], seed=rank)
    loader = DataLoader(shard, batch_size=32, shuffle=True)
    x_val, y_val = sensor_shard(400, seed=10).tensors

    net = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    model = DDP(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    print(f"rank {rank}: {len(loader)} batches", flush=True)

    for epoch in range(6):
        with model.join():
            for x, y in loader:
                optimizer.zero_grad()
                loss = nn.functional.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
        if rank == 0:
            with torch.no_grad():
                val = nn.functional.mse_loss(net(x_val), y_val).item()
            print(f"epoch {epoch} loss {loss.item():.4f} val {val:.4f}", flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    launch()
    main()
