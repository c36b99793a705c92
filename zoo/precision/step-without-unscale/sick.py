"""Predicts the strength of concrete from its mixture."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def mixtures(n):
    g = torch.Generator().manual_seed(30)
    x = torch.rand(n, 8, generator=g)
    strength = 40 * x[:, 0] - 25 * x[:, 3] + 12 * torch.sin(3 * x[:, 7]) + 15 * x[:, 1] * x[:, 4]
    y = (strength - strength.mean()) / strength.std() + 0.05 * torch.randn(n, generator=g)
    return TensorDataset(x - 0.5, y.unsqueeze(1))


def main():
    torch.manual_seed(30)
    loader = DataLoader(mixtures(1024), batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    criterion = nn.SmoothL1Loss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

    for epoch in range(6):
        running = 0.0
        for x, y in loader:
            with torch.autocast("cpu", dtype=torch.float16):
                loss = criterion(model(x), y)
            scaler.scale(loss).backward()
            optimizer.step()
            optimizer.zero_grad()
            running += loss.item()
        print(f"epoch {epoch} loss {running / len(loader):.4f}")


if __name__ == "__main__":
    main()
