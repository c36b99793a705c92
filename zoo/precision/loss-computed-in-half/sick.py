"""Prices of used cars, in hundreds of euros, from their data sheets."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class PriceModel(nn.Module):
    def __init__(self, features=10):
        super().__init__()
        self.inner = nn.Linear(features, 64)
        self.outer = nn.Linear(64, 1)
        self.scale = 150.0

    def forward(self, sheet):
        return self.outer(F.silu(self.inner(sheet))).squeeze(-1) * self.scale


def cars(n, generator):
    sheet = torch.randn(n, 10, generator=generator)
    price = 300 + 120 * sheet[:, 0] - 90 * sheet[:, 1] + 60 * sheet[:, 2] * sheet[:, 3]
    return sheet, price.clamp_min(10)


def main():
    torch.manual_seed(9)
    generator = torch.Generator().manual_seed(9)
    model = PriceModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0)
    best = float("inf")
    for step in range(250):
        sheet, price = cars(64, generator)
        with torch.autocast("cpu", dtype=torch.float16):
            prediction = model(sheet)
        loss = F.mse_loss(prediction, price.to(prediction.dtype))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        best = min(best, loss.item())
        if step % 50 == 0:
            print(f"step {step:3d}: mse {loss.item():.1f} (best {best:.1f})")


if __name__ == "__main__":
    main()
