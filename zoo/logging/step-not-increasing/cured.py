"""Fit the daily load curve of a power grid with a small network, with curves in TensorBoard."""
import math
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter

torch.manual_seed(3)
torch.set_num_threads(1)


def curve(n=1536):
    hour = torch.rand(n, 1) * 24
    load = torch.sin(hour / 24 * 2 * math.pi) + 0.4 * torch.cos(hour / 6 * math.pi) + 0.05 * torch.randn(n, 1)
    return TensorDataset(hour / 24, load)


def main():
    loader = DataLoader(curve(), batch_size=64, shuffle=True)
    model = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    writer = SummaryWriter(tempfile.mkdtemp(prefix="grid-"))
    for epoch in range(8):
        total = 0.0
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            writer.add_scalar("train/loss", loss.item(), epoch * len(loader) + i)
        writer.add_scalar("train/epoch_loss", total / len(loader), epoch)
        print(f"epoch {epoch}: {total / len(loader):.4f}")
    writer.close()


if __name__ == "__main__":
    main()
