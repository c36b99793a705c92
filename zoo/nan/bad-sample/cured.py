"""Activity recognition from accelerometer windows that are stored as one file each."""
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

KINDS = 4


def record(folder, n=400, seed=13):
    """Writes the recordings of the study; a stand-in for what the loggers delivered."""
    rng = np.random.default_rng(seed)
    t = np.arange(50) / 25
    for k in range(n):
        kind = k % KINDS
        phase = rng.uniform(0, 6.28, size=(3, 1))
        window = np.sin(2 * np.pi * (0.7 + 0.6 * kind) * t + phase) + 0.6 * rng.normal(size=(3, 50))
        if k == 217:
            window[1, 30:37] = np.nan
        np.save(folder / f"subject_{k:03d}.npy", window)


class Windows(Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.glob("subject_*.npy"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        window = np.load(self.files[index]).astype(np.float32)
        window = np.where(np.isfinite(window), window, 0.0).astype(np.float32)
        return torch.from_numpy(window), index % KINDS


def main(folder):
    torch.manual_seed(13)
    torch.set_num_threads(1)
    record(folder)
    loader = DataLoader(Windows(folder), batch_size=16, shuffle=True)
    net = nn.Sequential(
        nn.Conv1d(3, 16, 7, stride=2), nn.ReLU(), nn.Conv1d(16, 32, 5, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, KINDS),
    )
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    for epoch in range(6):
        total = 0.0
        for window, label in loader:
            optimizer.zero_grad()
            loss = criterion(net(window), label)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}  train loss {total / len(loader):.4f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        main(Path(scratch))
