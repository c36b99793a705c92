"""Sequence to sequence toy: reverse ten digits. Curves go to TensorBoard."""
import argparse
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.tensorboard import SummaryWriter

DIGITS = 10
LENGTH = 10


class Reverser(nn.Module):
    def __init__(self, dim=16, hidden=128):
        super().__init__()
        self.embed = nn.Embedding(DIGITS, dim)
        self.mix = nn.Sequential(
            nn.Linear(LENGTH * dim, hidden),
            nn.ReLU(),
            nn.Linear(hidden, DIGITS * LENGTH),
        )

    def forward(self, ids):
        h = self.embed(ids).flatten(1)
        return self.mix(h).view(-1, DIGITS, LENGTH)


def get_batch(size):
    ids = torch.randint(DIGITS, (size, LENGTH))
    return ids, ids.flip(1)


def accuracy(scores, target):
    preds = scores.argmax(dim=1)
    return (preds == target).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--logdir", default=None)
    args = parser.parse_args()

    torch.manual_seed(1)

    torch.set_num_threads(1)
    writer = SummaryWriter(args.logdir or tempfile.mkdtemp(prefix="reverse-"))
    model = Reverser()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for step in range(args.steps):
        ids, target = get_batch(128)
        scores = model(ids)
        loss = F.cross_entropy(scores, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            acc = accuracy(scores.detach(), target)
            writer.add_scalar("train/loss", loss.item(), step)
            writer.add_scalar("train/accuracy", acc, step)
            if step % 50 == 49:
                print(f"step {step + 1}: loss {loss.item():.4f}, accuracy {acc:.4f}")
    writer.close()


if __name__ == "__main__":
    main()
