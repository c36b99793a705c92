"""A recurrent language model over cycles of notes; batches come from a collate function."""
import random

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader

NOTES = 24


def melody(rng, length=33):
    """A walk in which the next note depends on the last one, with some freedom."""
    notes = [rng.randrange(NOTES)]
    while len(notes) < length:
        notes.append((notes[-1] * 5 + rng.choice((1, 1, 1, 7))) % NOTES)
    return notes


def collate(batch):
    notes = torch.tensor(batch)
    return notes[:, :-2], notes[:, 1:-1]


class Composer(nn.Module):
    def __init__(self):
        super().__init__()
        self.notes = nn.Embedding(NOTES, 32)
        self.rnn = nn.GRU(32, 64, batch_first=True)
        self.out = nn.Linear(64, NOTES)

    def forward(self, notes, targets):
        logits = self.out(self.rnn(self.notes(notes))[0])
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), targets[:, 1:].flatten())


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    rng = random.Random(1)
    loader = DataLoader([melody(rng) for _ in range(960)], batch_size=32, shuffle=True, collate_fn=collate)
    composer = Composer()
    optimizer = torch.optim.AdamW(composer.parameters(), lr=3e-3)
    for epoch in range(5):
        total = 0.0
        for notes, targets in loader:
            loss = composer(notes, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
