"""A small GoogLeNet-like classifier under DDP; the auxiliary classifier helps during the first epochs."""

import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CLASSES = 5
AUX_EPOCHS = 2


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


class MiniGoogLeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(2, 16, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2))
        self.middle = nn.Sequential(nn.Conv1d(16, 32, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2))
        self.top = nn.Sequential(nn.Conv1d(32, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool1d(4), nn.Flatten())
        self.classifier = nn.Linear(128, CLASSES)
        self.aux_classifier = nn.Sequential(nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(128, CLASSES))

    def forward(self, x, with_aux):
        x = self.middle(self.stem(x))
        aux = self.aux_classifier(x) if with_aux else None
        return self.classifier(self.top(x)), aux


def waves(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, CLASSES, (n,), generator=g)
    t = torch.linspace(0, 6.28, 48)
    first = torch.sin((y + 1).view(n, 1) * t + 6.28 * torch.rand(n, 1, generator=g))
    second = torch.sin((y + 2).view(n, 1) * t + 6.28 * torch.rand(n, 1, generator=g))
    return TensorDataset(torch.stack([first, second], 1) + 0.8 * torch.randn(n, 2, 48, generator=g), y)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    train_set = waves(1600, seed=0)
    sampler = DistributedSampler(train_set, shuffle=True)
    loader = DataLoader(train_set, batch_size=32, sampler=sampler)
    test_x, test_y = waves(500, seed=1).tensors

    net = MiniGoogLeNet()
    model = DDP(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    for epoch in range(6):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in loader:
            logits, aux = model(x, with_aux=epoch < AUX_EPOCHS)
            loss = F.cross_entropy(logits, y)
            if aux is not None:
                loss = loss + 0.3 * F.cross_entropy(aux, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            net.eval()
            with torch.no_grad():
                acc = (net(test_x, with_aux=False)[0].argmax(1) == test_y).float().mean().item()
            print(f"epoch {epoch} loss {loss.item():.4f} accuracy {acc:.3f}", flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    launch()
    main()
