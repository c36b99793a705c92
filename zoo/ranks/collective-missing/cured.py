"""Classify small synthetic textures with DistributedDataParallel; checkpoint and validate after each epoch."""

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


def textures(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 4, (n,), generator=g)
    grid = torch.arange(16.0)
    phase = 6.28 * torch.rand(n, 1, 1, generator=g)
    across = torch.sin(grid.view(1, 1, 16) * (0.6 + 0.5 * (y % 2)).view(n, 1, 1) + phase)
    down = torch.sin(grid.view(1, 16, 1) * (0.6 + 0.5 * (y // 2)).view(n, 1, 1) + phase)
    images = across + down + 1.2 * torch.randn(n, 16, 16, generator=g)
    return TensorDataset(images.unsqueeze(1), y)


class TextureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 5, padding=2)
        self.conv2 = nn.Conv2d(12, 24, 5, padding=2)
        self.fc = nn.Linear(24 * 16, 4)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


@torch.no_grad()
def accuracy(net, loader):
    net.eval()
    hits = sum((net(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    train_set = textures(1600, seed=1)
    sampler = DistributedSampler(train_set)
    train_loader = DataLoader(train_set, batch_size=32, sampler=sampler)
    val_loader = DataLoader(textures(400, seed=2), batch_size=100)

    model = DDP(TextureNet())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    checkpoint = os.path.join(tempfile.gettempdir(), f"texture-{os.environ['MASTER_PORT']}.pt")

    for epoch in range(6):
        sampler.set_epoch(epoch)
        model.train()
        for step, (x, y) in enumerate(train_loader):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if step % 5 == 0 and rank == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
        if rank == 0:
            acc = accuracy(model.module, val_loader)
            print(f"epoch {epoch} accuracy {acc:.3f}", flush=True)
            torch.save(model.module.state_dict(), checkpoint)
        dist.barrier()

    if rank == 0:
        os.remove(checkpoint)
    dist.destroy_process_group()


if __name__ == "__main__":
    launch()
    main()
