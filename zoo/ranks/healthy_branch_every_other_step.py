"""DDP with find_unused_parameters: each rank draws its own samples of the same classes, and the decoder runs every other step."""

import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

CLASSES, FEATURES, BATCH = 6, 24, 36


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


class ClassifierWithDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 16))
        self.classify = nn.Linear(16, CLASSES)
        self.decode = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, FEATURES))

    def forward(self, x, reconstruct):
        z = self.encoder(x)
        return self.classify(z), self.decode(z) if reconstruct else None


class BalancedStream:
    """Endless batches in which each class occurs equally often, in the same order on each rank; the features differ."""

    def __init__(self, seed):
        self.centers = torch.randn(CLASSES, FEATURES, generator=torch.Generator().manual_seed(5))
        self.generator = torch.Generator().manual_seed(seed)

    def __next__(self):
        y = torch.arange(CLASSES).repeat(BATCH // CLASSES)
        return self.centers[y] + 1.3 * torch.randn(BATCH, FEATURES, generator=self.generator), y

    def __iter__(self):
        return self


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(ClassifierWithDecoder(), find_unused_parameters=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for step, (x, y) in enumerate(BalancedStream(seed=rank)):
        logits, decoded = model(x, reconstruct=step % 2 == 0)
        loss = F.cross_entropy(logits, y)
        if decoded is not None:
            loss = loss + 0.1 * F.mse_loss(decoded, x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 60 == 0 and rank == 0:
            acc = (logits.argmax(1) == y).float().mean().item()
            print(f"step {step} loss {loss.item():.4f} accuracy {acc:.3f}", flush=True)
        if step == 480:
            break

    dist.destroy_process_group()


if __name__ == "__main__":
    launch()
    main()
