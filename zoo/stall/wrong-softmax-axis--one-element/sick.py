"""Reads a table of sensors: one of them is switched on, and the label is what that one shows."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SENSORS, VALUES = 16, 6


def tables(n, generator):
    shown = torch.randint(VALUES, (n, SENSORS), generator=generator)
    active = torch.randint(SENSORS, (n,), generator=generator)
    on = F.one_hot(active, SENSORS).unsqueeze(-1).float()
    rows = torch.cat([F.one_hot(shown, VALUES).float(), on], dim=-1)
    return TensorDataset(rows, shown.gather(1, active.unsqueeze(1)).squeeze(1))


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, rows):
        share = self.score(rows).softmax(-1)
        return (share * rows).sum(1)


class Reader(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.enter = nn.Linear(VALUES + 1, width)
        self.gate = Gate(width)
        self.out = nn.Linear(width, VALUES)

    def forward(self, rows):
        return self.out(self.gate(self.enter(rows)))


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    loader = DataLoader(tables(2000, torch.Generator().manual_seed(5)), batch_size=50, shuffle=True)
    reader = Reader()
    optimizer = torch.optim.Adam(reader.parameters(), lr=3e-3)
    for epoch in range(8):
        right = total = 0.0
        for rows, labels in loader:
            logits = reader(rows)
            loss = F.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (logits.argmax(1) == labels).sum().item()
            total += loss.item() * len(labels)
        print(f"epoch {epoch}: loss {total / 2000:.3f} accuracy {right / 2000:.3f}")


if __name__ == "__main__":
    main()
