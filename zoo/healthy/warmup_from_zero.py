"""Transformer classifier with a linear warm-up whose very first learning rate is zero, then cosine decay."""
import argparse
import math

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import LambdaLR


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=250)
    p.add_argument("--warmup-steps", type=int, default=60)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--seed", type=int, default=42)
    return p.parse_args()


class Encoder(nn.Module):
    def __init__(self, vocab=20, dim=32, length=12):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.zeros(1, length, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.1, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 4)

    def forward(self, ids):
        return self.head(self.blocks(self.tok(ids) + self.pos).mean(1))


def get_batch(n):
    """The class is the most frequent of the tokens 0..3."""
    ids = torch.randint(4, 20, (n, 12))
    y = torch.randint(0, 4, (n,))
    where = torch.rand(n, 12).argsort(1)[:, :3]
    ids.scatter_(1, where, y[:, None].expand(-1, 3))
    ids[:, 0] = torch.randint(0, 4, (n,))
    return ids, y


def main():
    args = parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    model = Encoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)

    def schedule(step):
        if step < args.warmup_steps:
            return step / args.warmup_steps
        progress = (step - args.warmup_steps) / (args.steps - args.warmup_steps)
        return 0.5 * (1 + math.cos(math.pi * progress))

    scheduler = LambdaLR(optimizer, schedule)
    criterion = nn.CrossEntropyLoss()
    model.train()
    for step in range(args.steps):
        ids, y = get_batch(args.batch_size)
        loss = criterion(model(ids), y)
        loss.backward()
        lr = scheduler.get_last_lr()[0]
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        if step % 10 == 0 or step == args.steps - 1:
            print(f"step={step} lr={lr:.2e} loss={loss.item():.4f}", flush=True)

    model.eval()
    with torch.no_grad():
        ids, y = get_batch(1000)
        print(f"test accuracy: {(model(ids).argmax(1) == y).float().mean():.3f}")


if __name__ == "__main__":
    main()
