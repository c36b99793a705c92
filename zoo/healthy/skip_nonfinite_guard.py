"""Masked prediction; a few batches have no masked token, their loss is NaN (mean of nothing) and is skipped."""
import math
import sys

import torch
import torch.nn as nn

VOCAB, LENGTH, MASK_ID = 20, 8, 0


class MaskedModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 32)
        self.rnn = nn.GRU(32, 32, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, VOCAB)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])


def batch_of(n, rng):
    """Counting sequences modulo 19; 10 % of the tokens are hidden, all other labels are -100."""
    start = torch.randint(0, VOCAB - 1, (n, 1), generator=rng)
    step = torch.randint(1, 4, (n, 1), generator=rng)
    ids = (start + step * torch.arange(LENGTH)) % (VOCAB - 1) + 1
    hidden = torch.rand(n, LENGTH, generator=rng) < 0.1
    labels = ids.masked_fill(~hidden, -100)
    return ids.masked_fill(hidden, MASK_ID), labels


def train_one_epoch(model, optimizer, epoch, rng, iterations=100, batch_size=4):
    criterion = nn.CrossEntropyLoss(ignore_index=-100)
    losses, skipped = [], 0
    for it in range(iterations):
        ids, labels = batch_of(batch_size, rng)
        loss = criterion(model(ids).flatten(0, 1), labels.flatten())
        if not math.isfinite(loss.item()):
            skipped += 1
            continue
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    print(f"Epoch: [{epoch}]  loss: {sum(losses) / len(losses):.4f}  skipped {skipped} of {iterations} batches")
    sys.stdout.flush()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = torch.Generator().manual_seed(0)
    model = MaskedModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(5):
        train_one_epoch(model, optimizer, epoch, rng)


if __name__ == "__main__":
    main()
