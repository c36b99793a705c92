"""Each loader worker builds its own table with the first sample it is asked for; afterwards samples are instant."""

import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


def build_table(seconds):
    """Searches numbers with long Collatz chains for as long as it may."""
    table, number = [], 1
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        number += 1
        value, length = number, 0
        while value != 1:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            length += 1
        table.append((number, length))
    return table


class Chains(Dataset):
    def __init__(self, n, seconds):
        self.n, self.seconds = n, seconds
        self.table = None

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if self.table is None:
            self.table = build_table(self.seconds)
        number, length = self.table[i]
        bits = torch.tensor([float(number >> b & 1) for b in range(12)])
        return bits, torch.tensor([length / 100])


def epoch(model, optimizer, loader):
    total = 0.0
    for bits, length in loader:
        loss = nn.functional.smooth_l1_loss(model(bits), length)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    small = DataLoader(Chains(600, seconds=0.2), batch_size=50)
    print(f"small table: loss {epoch(model, optimizer, small):.4f}", flush=True)
    loader = DataLoader(Chains(1000, seconds=8), batch_size=50, num_workers=2, persistent_workers=True, prefetch_factor=4)
    for k in range(3):
        print(f"epoch {k}: loss {epoch(model, optimizer, loader):.4f}", flush=True)
