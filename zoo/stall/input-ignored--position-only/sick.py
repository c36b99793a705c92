"""Tiny transformer that counts: which of four symbols occurs most often?"""
import argparse

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, vocab, length, classes, dim=32):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Embedding(length, dim)
        layer = nn.TransformerEncoderLayer(dim, nhead=2, dim_feedforward=64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=1)
        self.head = nn.Linear(dim, classes)

    def forward(self, ids):
        positions = torch.arange(ids.size(1), device=ids.device).expand_as(ids)
        h = self.tok(ids)
        h = self.pos(positions)
        h = self.encoder(h)
        return self.head(h.mean(dim=1))


def sample(batch, length, vocab):
    weights = torch.rand(batch, vocab).pow(2)
    ids = torch.multinomial(weights, length, replacement=True)
    counts = nn.functional.one_hot(ids, vocab).sum(dim=1)
    return ids, counts.argmax(dim=1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=240)
    ap.add_argument("--batch", type=int, default=64)
    ap.add_argument("--length", type=int, default=16)
    ap.add_argument("--lr", type=float, default=3e-3)
    args = ap.parse_args()
    torch.manual_seed(5)
    torch.set_num_threads(1)

    vocab = 4
    model = Encoder(vocab, args.length, classes=vocab)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    criterion = nn.CrossEntropyLoss()
    for step in range(args.steps):
        ids, target = sample(args.batch, args.length, vocab)
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(ids), target)
        loss.backward()
        optimizer.step()
        if (step + 1) % 30 == 0:
            print(f"{step + 1:5d} loss {loss.item():.4f}")

    model.eval()
    with torch.no_grad():
        ids, target = sample(1000, args.length, vocab)
        acc = (model(ids).argmax(dim=-1) == target).float().mean()
    print(f"accuracy {acc:.3f}")


if __name__ == "__main__":
    main()
