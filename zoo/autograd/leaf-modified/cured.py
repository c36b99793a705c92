"""Noisy weights as regulariser: from the third epoch on every linear layer is shaken before the epoch."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def two_spirals(n):
    t = torch.rand(n) * 4 + 1
    label = torch.randint(0, 2, (n,))
    angle = t + label * 3.1416
    xy = torch.stack([t * angle.cos(), t * angle.sin()], 1) / 3
    return xy + 0.02 * torch.randn(n, 2), label


def shake(model, std=0.01):
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            with torch.no_grad():
                layer.weight += std * torch.randn_like(layer.weight)


def fit(model, x, y, epochs=12):
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(epochs):
        if epoch >= 2:
            shake(model)
        for rows in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


torch.manual_seed(12)
torch.set_num_threads(1)
fit(nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2)), *two_spirals(1500))
