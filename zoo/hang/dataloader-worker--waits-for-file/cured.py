"""A thread cuts a recording into shards while the loader already reads them."""

import tempfile
import threading
import time
from pathlib import Path

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SHARD = 64


def recording(n):
    torch.manual_seed(21)
    x = torch.randn(n, 24)
    y = (x[:, :4].sum(1) > 0).float()
    return x, y


def cut(x, y, folder):
    for shard in range(-(-len(x) // SHARD)):
        part = slice(shard * SHARD, (shard + 1) * SHARD)
        unfinished = folder / f"{shard}.part"
        torch.save((x[part].clone(), y[part].clone()), unfinished)
        unfinished.rename(folder / f"{shard}.pt")


class Shards(Dataset):
    def __init__(self, folder, n):
        self.folder, self.n = folder, n
        self.number, self.held = None, None

    def __len__(self):
        return self.n

    def __getitem__(self, index):
        number, row = divmod(index, SHARD)
        if number != self.number:
            path = self.folder / f"{number}.pt"
            while not path.exists():
                time.sleep(0.05)
            self.number, self.held = number, torch.load(path)
        x, y = self.held
        return x[row], y[row]


def main():
    torch.set_num_threads(1)
    x, y = recording(1000)
    folder = Path(tempfile.mkdtemp(prefix="shards-"))
    cutter = threading.Thread(target=cut, args=(x, y, folder))
    cutter.start()
    loader = DataLoader(Shards(folder, len(x)), batch_size=40, num_workers=1)
    net = nn.Sequential(nn.Linear(24, 32), nn.SiLU(), nn.Linear(32, 1), nn.Flatten(0))
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(2):
        seen, total = 0, 0.0
        for inputs, targets in loader:
            loss = criterion(net(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += len(inputs)
            total += loss.item() * len(inputs)
            if seen % 200 == 0:
                print(f"epoch {epoch}  {seen:4d}/{len(x)}  loss {total / seen:.4f}", flush=True)
    cutter.join()


if __name__ == "__main__":
    main()
