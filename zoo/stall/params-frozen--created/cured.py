import math

import torch
import torch.nn as nn


class MixingLayer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) / math.sqrt(inputs))

    def forward(self, x):
        return x @ self.weight


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Sequential(MixingLayer(30, 32), nn.Tanh(), MixingLayer(32, 3), nn.Tanh())
        self.out = nn.Linear(3, 2)

    def forward(self, window):
        return self.out(self.mix(window))


def series(n, length=32):
    """Noisy waves; the next two values are to be predicted from the thirty before."""
    t = torch.arange(length, dtype=torch.float32)
    phase = torch.rand(n, 1) * 2 * math.pi
    speed = 0.3 + 0.3 * torch.rand(n, 1)
    wave = torch.sin(speed * t + phase) + 0.1 * torch.randn(n, length)
    return wave[:, :-2], wave[:, -2:]


def main():
    torch.manual_seed(9)
    x, y = series(2048)
    x_val, y_val = series(512)
    model = Forecaster()
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=5e-3)
    mse = nn.MSELoss()
    for epoch in range(20):
        for i in torch.randperm(len(x)).split(128):
            optimizer.zero_grad()
            loss = mse(model(x[i]), y[i])
            loss.backward()
            optimizer.step()
        if epoch % 4 == 3:
            with torch.no_grad():
                rmse = mse(model(x_val), y_val).sqrt().item()
            print(f"epoch {epoch + 1:2d}  train loss {loss.item():.4f}  val rmse {rmse:.4f}")


if __name__ == "__main__":
    main()
