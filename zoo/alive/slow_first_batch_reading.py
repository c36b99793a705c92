"""The corpus is one big file on slow storage, read piece by piece before the first batch of the second stage."""

import os
import tempfile
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

PIECE = 4096


def write_corpus(path, pieces=1000):
    with open(path, "wb") as file:
        file.write(text(PIECE * pieces, seed=5).numpy().tobytes())


def text(n, seed):
    """Bytes that count upwards, with jumps now and then."""
    g = torch.Generator().manual_seed(seed)
    jumps = torch.randint(0, 64, (n,), generator=g) * (torch.rand(n, generator=g) < 0.1)
    return ((jumps + 1).cumsum(0) % 64).to(torch.uint8)


def read_slowly(path):
    chunks = []
    with open(path, "rb", buffering=0) as file:
        while chunk := file.read(PIECE):
            chunks.append(chunk)
            time.sleep(0.01)
    return torch.frombuffer(bytearray(b"".join(chunks)), dtype=torch.uint8).long()


class ByteModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(64, 16)
        self.out = nn.Linear(16 * 4, 64)

    def forward(self, bytes_):
        return self.out(self.embed(bytes_).flatten(1))


def train(model, optimizer, corpus, steps):
    for _ in range(steps):
        at = torch.randint(0, len(corpus) - 5, (64,))
        window = corpus[at[:, None] + torch.arange(5)]
        loss = F.cross_entropy(model(window[:, :4]), window[:, 4])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "corpus.bin")
        write_corpus(path)
        model = ByteModel()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        print("on a sample:", train(model, optimizer, text(2000, seed=6).long(), 20), flush=True)
        corpus = read_slowly(path)
        print(len(corpus), "bytes read", flush=True)
        print("on the corpus:", train(model, optimizer, corpus, 30), flush=True)
