"""Predict readmission from patient records with DDP. Every rank trains on the records of its own hospital."""

import os
import socket
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

HOSPITALS = {"north": 1504, "south": 1344}
COLUMNS = 18


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


def records(count, seed):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(count, COLUMNS, generator=gen)
    w = torch.randn(COLUMNS, generator=torch.Generator().manual_seed(77))
    risk = torch.tanh(x @ w) + (x[:, 0] * x[:, 1])
    y = (risk + 0.3 * torch.randn(count, generator=gen) > 0).float()
    return TensorDataset(x, y)


def auc(scores, labels):
    order = scores.argsort()
    ranks = torch.empty_like(order, dtype=torch.float)
    ranks[order] = torch.arange(1, len(order) + 1, dtype=torch.float)
    positive = labels == 1
    n_pos, n_neg = positive.sum(), (~positive).sum()
    return ((ranks[positive].sum() - n_pos * (n_pos + 1) / 2) / (n_pos * n_neg)).item()


def train_one_epoch(model, loader, criterion, optimizer):
    model.train()
    running = 0.0
    steps = torch.tensor(len(loader))
    dist.all_reduce(steps, op=dist.ReduceOp.MIN)
    for (x, y), _ in zip(loader, range(steps)):
        optimizer.zero_grad()
        loss = criterion(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(f"rank {dist.get_rank()}: last loss {loss.item():.4f}", flush=True)
    return running / steps.item()


@torch.no_grad()
def validate(net, data):
    net.eval()
    x, y = data.tensors
    return auc(net(x).squeeze(1), y)


def main():
    torch.set_num_threads(1)
    dist.init_process_group(backend="gloo")
    rank = dist.get_rank()
    torch.manual_seed(2024 + rank)

    name, count = list(HOSPITALS.items())[rank]
    train_data = records(count, seed=rank)
    loader = DataLoader(train_data, batch_size=32, shuffle=True)
    held_out = records(800, seed=50)

    net = nn.Sequential(nn.Linear(COLUMNS, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
    model = DistributedDataParallel(net)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    print(f"{name}: {len(train_data)} records", flush=True)

    for epoch in range(8):
        loss = train_one_epoch(model, loader, criterion, optimizer)
        dist.barrier()
        if rank == 0:
            print(f"epoch {epoch + 1} loss {loss:.4f} auc {validate(net, held_out):.3f}", flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    launch()
    main()
