"""Gaps in the records are NaN on purpose: they are replaced by nan_to_num and left out of the loss by a mask."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Stations(Dataset):
    """Daily weather of a station; the next day is to be told. A tenth of the cells were never measured."""

    def __init__(self, days=1500, channels=6, seed=13):
        rng = np.random.default_rng(seed)
        wave = np.sin(np.arange(days)[:, None] / np.linspace(2, 9, channels)[None])
        self.table = (wave + 0.1 * rng.normal(size=wave.shape)).astype(np.float32)
        self.table[rng.random(wave.shape) < 0.1] = np.nan

    def __len__(self):
        return len(self.table) - 4

    def __getitem__(self, day):
        return self.table[day:day + 4], self.table[day + 4]


def main():
    torch.manual_seed(13)
    torch.set_num_threads(1)
    loader = DataLoader(Stations(), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 64), nn.ReLU(), nn.Linear(64, 6))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(5):
        total = 0.0
        for window, target in loader:
            known = torch.isfinite(window)
            predicted = model(torch.cat([torch.nan_to_num(window), known.float()], dim=2))
            measured = torch.isfinite(target)
            loss = (predicted - torch.nan_to_num(target)).pow(2)[measured].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
