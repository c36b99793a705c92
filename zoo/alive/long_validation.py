"""Validation by Monte-Carlo dropout takes far longer than the training between two validations."""

import time

import torch
import torch.nn as nn


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(6, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 1)
        )

    def forward(self, x):
        return self.layers(x)


def sample(n):
    x = torch.randn(n, 6)
    return x, (x[:, :1] * x[:, 1:2]).sin() + 0.1 * torch.randn(n, 1)


@torch.no_grad()
def validate(model, x, y, seconds):
    """Mean prediction of as many dropout masks as fit into the time."""
    total, passes = torch.zeros_like(y), 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        total += model(x)
        passes += 1
    return (total / passes - y).pow(2).mean().sqrt().item(), passes


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Regressor()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    x_val, y_val = sample(4000)
    for epoch, seconds in enumerate((0.5, 10)):
        for _ in range(40):
            x, y = sample(64)
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        rmse, passes = validate(model, x_val, y_val, seconds)
        print(f"epoch {epoch}: train {loss.item():.4f}, validation rmse {rmse:.4f} from {passes} passes", flush=True)
    for _ in range(10):
        x, y = sample(64)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("last loss", loss.item())


if __name__ == "__main__":
    main()
