"""Speaker embeddings with a learnt margin loss: the network is shared between two ranks, the class centres belong to the loss."""

import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SPEAKERS, FEATURES, DIM = 10, 24, 16


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


class MarginLoss(nn.Module):
    def __init__(self, margin=0.1, scale=12.0):
        super().__init__()
        self.margin, self.scale = margin, scale
        self.centres = nn.Parameter(0.3 * torch.randn(SPEAKERS, DIM))

    def forward(self, embedded, speaker):
        cosine = F.normalize(embedded, dim=1) @ F.normalize(self.centres, dim=1).T
        return F.cross_entropy(self.scale * (cosine - self.margin * F.one_hot(speaker, SPEAKERS)), speaker)


def utterances(rank, n=1600):
    voices = torch.randn(SPEAKERS, FEATURES, generator=torch.Generator().manual_seed(4))
    g = torch.Generator().manual_seed(60 + rank)
    speaker = torch.randint(0, SPEAKERS, (n,), generator=g)
    return voices[speaker] + 0.9 * torch.randn(n, FEATURES, generator=g), speaker, g


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(2)
    network = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, DIM))
    criterion = MarginLoss()
    network = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(list(network.parameters()) + list(criterion.parameters()), lr=4e-3)
    x, speaker, g = utterances(rank)
    for epoch in range(6):
        for rows in torch.randperm(len(x), generator=g).split(40):
            loss = criterion(network(x[rows]), speaker[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    launch()
    main()
