"""Tell the language of a document from hashed character trigrams (DDP). Documents come from a listing ordered by size."""

import os
import random
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset

LANGUAGES, BUCKETS = 6, 512
SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]


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


def listing(count, seed):
    rng = random.Random(seed)
    habits = [random.Random(900 + k).choices(range(1, 20), k=len(SYLLABLES)) for k in range(LANGUAGES)]
    documents = []
    for _ in range(count):
        language = rng.randrange(LANGUAGES)
        length = int(130 * rng.lognormvariate(0.0, 1.0)) + 10
        documents.append(("".join(rng.choices(SYLLABLES, habits[language], k=length)), language))
    return sorted(documents, key=lambda d: len(d[0]))


def download(document):
    """The archive serves 200 kB a second."""
    time.sleep(len(document[0]) / 200e3)
    return document


class Documents(Dataset):
    def __init__(self, documents):
        self.documents = documents

    def __len__(self):
        return len(self.documents)

    def __getitem__(self, i):
        text, language = download(self.documents[i])
        codes = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8).long()
        trigrams = (codes[:-2] * 961 + codes[1:-1] * 31 + codes[2:]) % BUCKETS
        counts = torch.bincount(trigrams, minlength=BUCKETS).float()
        return counts / counts.norm(), language


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)

    documents = listing(2400, seed=1)
    mine = documents[rank::world]
    loader = DataLoader(Documents(mine), batch_size=16, shuffle=True)
    test_x, test_y = next(iter(DataLoader(Documents(listing(200, seed=2)), batch_size=200)))

    net = nn.Sequential(nn.Linear(BUCKETS, 64), nn.ReLU(), nn.Linear(64, LANGUAGES))
    model = DDP(net)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    for epoch in range(3):
        begin = time.time()
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        if rank == 0:
            with torch.no_grad():
                acc = (net(test_x).argmax(1) == test_y).float().mean().item()
            print(f"epoch {epoch} loss {loss.item():.4f} accuracy {acc:.3f} ({time.time() - begin:.1f} s)", flush=True)

    dist.destroy_process_group()


if __name__ == "__main__":
    launch()
    main()
