"""Tag words from partly annotated sentences. Unannotated words have weight zero; gradients are averaged over the ranks."""

import argparse
import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

VOCAB, TAGS, LENGTH = 120, 6, 12


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


class Tagger(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.conv = nn.Conv1d(dim, dim, 3, padding=1)
        self.out = nn.Linear(dim, TAGS)

    def forward(self, words):
        h = self.embed(words)
        h = F.relu(self.conv(h.transpose(1, 2)).transpose(1, 2)) + h
        return self.out(h)


def corpus(n):
    g = torch.Generator().manual_seed(21)
    words = torch.randint(0, VOCAB, (n, LENGTH), generator=g)
    lexicon = torch.randint(0, TAGS, (VOCAB,), generator=g)
    tags = (lexicon[words] + (words.roll(1, dims=1) % 2)) % TAGS
    annotated = (torch.rand(n, LENGTH, generator=g) < 0.6).float()
    annotated[240:256] = 0.0  # the page that was lost
    return words, tags, annotated


def average_gradients(params, world):
    grads = [p.grad for p in params]
    flat = torch.cat([g.flatten() for g in grads])
    if flat.abs().sum() > 0:
        dist.all_reduce(flat)
        flat /= world
    for g, part in zip(grads, flat.split([g.numel() for g in grads])):
        g.copy_(part.view_as(g))


def main(args):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = Tagger()
    params = list(model.parameters())
    optimizer = torch.optim.SGD(params, lr=args.lr, momentum=0.9)
    words, tags, annotated = corpus(args.steps * args.batch_size * world)

    for step in range(args.steps):
        start = (step * world + rank) * args.batch_size
        rows = slice(start, start + args.batch_size)
        weight = annotated[rows]
        optimizer.zero_grad()
        scores = model(words[rows])
        per_word = F.cross_entropy(scores.flatten(0, 1), tags[rows].flatten(), reduction="none").view_as(weight)
        loss = (per_word * weight).sum() / weight.sum().clamp(min=1)
        loss.backward()
        average_gradients(params, world)
        optimizer.step()
        if step % 50 == 0 and rank == 0:
            acc = (((scores.argmax(-1) == tags[rows]) * weight).sum() / weight.sum()).item()
            print(f"step {step:3d} loss {loss.item():.4f} accuracy {acc:.3f}", flush=True)

    dist.barrier()
    if rank == 0:
        norm = sum(p.detach().square().sum() for p in params).sqrt().item()
        print(f"done, weight norm {norm:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    launch()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=0.2)
    main(parser.parse_args())
