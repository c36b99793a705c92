"""Two-stage training under DDP: pretrain on a coarse task, save, then fine-tune from the checkpoint."""

import os
import socket
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

FEATURES, FINE, COARSE = 30, 12, 3


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


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(FEATURES, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU())
        self.head = nn.Linear(48, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


def make_data(n, seed):
    centers = torch.randn(FINE, FEATURES, generator=torch.Generator().manual_seed(0))
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, FINE, (n,), generator=g)
    return centers[y] + 1.6 * torch.randn(n, FEATURES, generator=g), y


def train(model, x, y, epochs, lr, log):
    dataset = TensorDataset(x, y)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
        log(epoch, loss)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    path = os.path.join(tempfile.gettempdir(), f"pretrained-{os.environ['MASTER_PORT']}.pt")
    x, y = make_data(2400, seed=1)
    x_test, y_test = make_data(600, seed=2)

    def log(epoch, loss):
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)

    def log_accuracy(epoch, loss):
        with torch.no_grad():
            acc = (model.module(x_test).argmax(1) == y_test).float().mean().item()
        print(f"[{rank}] epoch {epoch} loss {loss.item():.4f} accuracy {acc:.3f}", flush=True)

    model = DDP(Classifier(COARSE))
    train(model, x, y % COARSE, epochs=5, lr=0.05, log=log)
    if rank == 0:
        torch.save(model.module.backbone.state_dict(), path)
    dist.barrier()

    model = DDP(Classifier(FINE))
    if rank == 0:
        model.module.backbone.load_state_dict(torch.load(path))
    dist.barrier()
    train(model, x, y, epochs=8, lr=0.02, log=log_accuracy)

    if rank == 0:
        os.remove(path)
    dist.destroy_process_group()


if __name__ == "__main__":
    launch()
    main()
