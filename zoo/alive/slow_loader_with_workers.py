"""Two loader workers fetch samples from a slow archive; a batch takes seconds to arrive."""

import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Archive(Dataset):
    def __init__(self, n, seconds):
        self.n, self.seconds = n, seconds

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        time.sleep(self.seconds)
        g = torch.Generator().manual_seed(i)
        x = torch.randn(1, 16, 16, generator=g)
        label = i % 2
        x[0, 4:12, 4:12] += 1.5 * label
        return x, label


class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 5, stride=2)
        self.fc = nn.Linear(6 * 36, 2)

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).flatten(1))


def epoch(model, optimizer, loader, name):
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{name}: {i + 1} batches, last loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Tiny()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    epoch(model, optimizer, DataLoader(Archive(320, 0), batch_size=16), "near")
    epoch(model, optimizer, DataLoader(Archive(64, 0.6), batch_size=16, num_workers=2), "far")
