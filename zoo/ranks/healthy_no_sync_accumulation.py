"""DDP with gradient accumulation: three micro-batches without communication, the fourth one reduces the sum."""

import contextlib
import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

ACCUMULATE, MICRO, VOCAB, LENGTH = 4, 16, 40, 16


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


class NextToken(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, VOCAB)

    def forward(self, tokens):
        return self.out(self.rnn(self.embed(tokens))[0])


def sequences(generator):
    """Each token is a fixed function of the two before it, with one in ten replaced."""
    tokens = torch.randint(0, VOCAB, (MICRO, LENGTH + 1), generator=generator)
    for t in range(2, LENGTH + 1):
        rule = (3 * tokens[:, t - 1] + 7) % VOCAB
        noisy = torch.rand(MICRO, generator=generator) < 0.1
        tokens[:, t] = torch.where(noisy, tokens[:, t], rule)
    return tokens[:, :-1], tokens[:, 1:]


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DDP(NextToken())
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    stream = torch.Generator().manual_seed(1000 + rank)

    running = 0.0
    for micro_step in range(150 * ACCUMULATE):
        tokens, targets = sequences(stream)
        last = (micro_step + 1) % ACCUMULATE == 0
        with contextlib.nullcontext() if last else model.no_sync():
            loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten()) / ACCUMULATE
            loss.backward()
        running += loss.item()
        if last:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            update = (micro_step + 1) // ACCUMULATE
            if rank == 0 and update % 15 == 0:
                print(f"update {update} loss {running / 15:.4f}", flush=True)
            if update % 15 == 0:
                running = 0.0

    dist.destroy_process_group()


if __name__ == "__main__":
    launch()
    main()
