"""Few-shot embedding: pull each sample towards its class prototype; prototypes are shared between the ranks every epoch."""

import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

CLASSES, FEATURES, DIM = 8, 20, 16


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


class Trainer:
    def __init__(self, warmup_epochs=3, epochs=10, batch_size=32):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.warmup_epochs, self.epochs, self.batch_size = warmup_epochs, epochs, batch_size
        torch.manual_seed(3)
        self.encoder = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, DIM))
        self.prototypes = F.normalize(torch.randn(CLASSES, DIM), dim=1)
        self.optimizer = torch.optim.AdamW(self.encoder.parameters(), lr=2e-3)
        self.x, self.y = self.samples(1200)

    def samples(self, n):
        centers = torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(9))
        g = torch.Generator().manual_seed(100 + self.rank)
        y = torch.randint(0, CLASSES, (n,), generator=g)
        return centers[y] + 0.8 * torch.randn(n, FEATURES, generator=g), y

    def average_gradients(self):
        for p in self.encoder.parameters():
            dist.all_reduce(p.grad)
            p.grad /= self.world

    def refresh_prototypes(self):
        with torch.no_grad():
            z = F.normalize(self.encoder(self.x), dim=1)
        sums = torch.zeros(CLASSES, DIM).index_add_(0, self.y, z)
        dist.all_reduce(sums)
        self.prototypes = F.normalize(sums, dim=1)

    def train_epoch(self):
        total = hits = 0.0
        for idx in torch.randperm(len(self.x)).split(self.batch_size):
            x, y = self.x[idx], self.y[idx]
            self.optimizer.zero_grad()
            logits = 10 * F.normalize(self.encoder(x), dim=1) @ self.prototypes.T
            loss = F.cross_entropy(logits, y)
            loss.backward()
            self.average_gradients()
            self.optimizer.step()
            total += loss.item() * len(y)
            hits += (logits.argmax(1) == y).sum().item()
        return total / len(self.x), hits / len(self.x)

    def fit(self):
        for epoch in range(self.epochs):
            if epoch >= self.warmup_epochs:
                self.refresh_prototypes()
            loss, acc = self.train_epoch()
            if self.rank == 0:
                print(f"epoch {epoch} loss {loss:.4f} accuracy {acc:.3f}", flush=True)


if __name__ == "__main__":
    launch()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    Trainer().fit()
    dist.destroy_process_group()
