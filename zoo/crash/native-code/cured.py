"""Forecasts load from sliding windows of a long recording."""

import numpy as np
import torch
import torch.nn as nn
from numpy.lib.stride_tricks import as_strided

LENGTH = 48


def windows_of(series, length, hop):
    step = series.strides[0]
    count = (len(series) - length) // hop
    return as_strided(series, shape=(count, length + 1), strides=(hop * step, step), writeable=False)


class Forecaster(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.cells = nn.GRU(1, width, batch_first=True)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        hidden, _ = self.cells(x.unsqueeze(-1))
        return self.out(hidden[:, -1]).squeeze(-1)


def batch_of(windows, rng, size):
    rows = windows[np.sort(rng.integers(0, len(windows), size))]
    rows = torch.from_numpy(np.ascontiguousarray(rows)).float() / 2**13
    return rows[:, :-1], rows[:, -1]


def main():
    rng = np.random.default_rng(3)
    torch.manual_seed(3)
    hours = np.arange(6_000_000, dtype=np.float32)
    series = (2**13 * np.sin(hours / 24) + 800 * rng.standard_normal(len(hours), dtype=np.float32)).astype(np.int16)
    split = len(series) // 3
    train, held_out = windows_of(series[:split], LENGTH, 1), windows_of(series[split:], LENGTH, 24)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(120):
        x, y = batch_of(train, rng, 64)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} mse {loss.item():.4f}", flush=True)
        if step % 50 == 49:
            with torch.no_grad():
                x, y = batch_of(held_out, rng, 512)
                print(f"held out {nn.functional.mse_loss(model(x), y).item():.4f}", flush=True)


if __name__ == "__main__":
    main()
