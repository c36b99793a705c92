"""Learns byte pairs in plain Python for a while, then trains a bag of tokens on them."""

import collections
import random
import time

import torch
import torch.nn as nn

SYLLABLES = ["ka", "to", "mi", "ren", "sol", "vu", "pla", "ost", "eri", "qui"]


def texts(n, seed):
    rng = random.Random(seed)
    rows = []
    for i in range(n):
        favourite = SYLLABLES[:6] if i % 2 else SYLLABLES[4:]
        rows.append(("".join(rng.choices(favourite, k=60)), i % 2))
    return rows


def learn_pairs(rows, seconds, most=400):
    """Byte-pair merges, as many as the time allows."""
    sequences = [list(text) for text, _ in rows]
    merges = []
    until = time.monotonic() + seconds
    while time.monotonic() < until and len(merges) < most:
        counts = collections.Counter()
        for sequence in sequences:
            counts.update(zip(sequence, sequence[1:]))
        pair = counts.most_common(1)[0][0]
        merges.append("".join(pair))
        for k, sequence in enumerate(sequences):
            merged, i = [], 0
            while i < len(sequence):
                if tuple(sequence[i : i + 2]) == pair:
                    merged.append(merges[-1])
                    i += 2
                else:
                    merged.append(sequence[i])
                    i += 1
            sequences[k] = merged
    return merges


def train(vocabulary, rows, steps=40):
    x = torch.tensor([[text.count(token) for token in vocabulary] for text, _ in rows[:200]]).float()
    y = torch.tensor([label for _, label in rows[:200]])
    model = nn.Linear(len(vocabulary), 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{len(vocabulary)} tokens: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = texts(2500, seed=1)
    train(sorted(set("".join(SYLLABLES))), rows)
    train(learn_pairs(rows, seconds=10), rows)
