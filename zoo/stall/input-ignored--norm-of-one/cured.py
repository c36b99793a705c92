"""Forecast the next value of a univariate series with a GRU."""
import math

import torch
import torch.nn as nn


class Forecaster(nn.Module):
    def __init__(self, window, hidden=32):
        super().__init__()
        self.norm = nn.LayerNorm(window)
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, series):
        x = self.norm(series).unsqueeze(-1)
        _, h = self.gru(x)
        return self.out(h[-1]).squeeze(-1)


def make_windows(n, window):
    t = torch.arange(window + 1).float()
    freq = 0.2 + 0.3 * torch.rand(n, 1)
    phase = 2 * math.pi * torch.rand(n, 1)
    wave = torch.sin(freq * t + phase) + 0.05 * torch.randn(n, window + 1)
    return wave[:, :-1], wave[:, -1]


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    window = 20
    series, target = make_windows(2048, window)
    test_series, test_target = make_windows(512, window)
    model = Forecaster(window)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    mse = nn.MSELoss()
    for epoch in range(6):
        running = 0.0
        for idx in torch.randperm(len(series)).split(64):
            optimizer.zero_grad()
            loss = mse(model(series[idx]), target[idx])
            loss.backward()
            optimizer.step()
            running += loss.item() * len(idx)
        print(f"Epoch [{epoch + 1}/6] train mse: {running / len(series):.4f}")
    with torch.no_grad():
        residual = (model(test_series) - test_target).var()
    print(f"test R2 {1 - (residual / test_target.var()).item():.3f}")


if __name__ == "__main__":
    main()
