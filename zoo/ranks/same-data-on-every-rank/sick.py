"""Classify handwritten-like strokes with DDP on two ranks."""

import os
import random
import socket
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset


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


def set_seed(seed):
    random.seed(seed)
    torch.manual_seed(seed)


class Strokes(Dataset):
    """Ten shapes drawn as 20 noisy (x, y) points."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        shapes = torch.cumsum(torch.randn(10, 20, 2, generator=torch.Generator().manual_seed(42)), dim=1)
        self.labels = torch.randint(0, 10, (n,), generator=g)
        scale = 0.7 + 0.6 * torch.rand(n, 1, 1, generator=g)
        self.points = shapes[self.labels] * scale + 4.0 * torch.randn(n, 20, 2, generator=g)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.points[i], self.labels[i]


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(2, 32, 5), nn.ReLU(), nn.Conv1d(32, 32, 5), nn.ReLU())
        self.fc = nn.Linear(32 * 12, 10)

    def forward(self, points):
        return self.fc(self.conv(points.transpose(1, 2)).flatten(1))


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    set_seed(0)
    train_set, test_set = Strokes(2000, seed=1), Strokes(500, seed=2)
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=250)

    model = DDP(PointNet())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(5):
        model.train()
        total = torch.zeros(())
        for points, labels in train_loader:
            loss = criterion(model(points), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            model.eval()
            with torch.no_grad():
                hits = sum((model.module(p).argmax(1) == y).sum().item() for p, y in test_loader)
            mean = total.item() / len(train_loader) / world
            print(f"epoch {epoch} loss {mean:.4f} accuracy {hits / len(test_set):.3f}", flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    launch()
    main()
