"""Send sensor curves over a narrow channel: a few levels of ten steps each, from which the curve is rebuilt."""

import math

import torch
from torch import nn


def curves(count, generator):
    time = torch.linspace(0, 1, 48)
    speed = 1 + 2 * torch.rand(count, 1, generator=generator)
    shift = 2 * math.pi * torch.rand(count, 1, generator=generator)
    height = 0.5 + torch.rand(count, 1, generator=generator)
    return height * torch.sin(2 * math.pi * speed * time + shift)


class Channel(nn.Module):
    def __init__(self, points=48, levels=10):
        super().__init__()
        self.squeeze = nn.Sequential(nn.Linear(points, 96), nn.GELU(), nn.Linear(96, levels), nn.Sigmoid())
        self.rebuild = nn.Sequential(nn.Linear(levels, 96), nn.GELU(), nn.Linear(96, points))

    def forward(self, x):
        levels = (9 * self.squeeze(x)).floor() / 9
        return self.rebuild(levels)


torch.manual_seed(12)
torch.set_num_threads(1)
chance = torch.Generator().manual_seed(3)
channel = Channel()
adam = torch.optim.Adam(channel.parameters(), lr=2e-3)
for step in range(500):
    batch = curves(64, chance)
    loss = nn.functional.mse_loss(channel(batch), batch)
    adam.zero_grad()
    loss.backward()
    adam.step()
    if step % 100 == 99:
        print(f"{step + 1}: error {loss.item():.4f} of {batch.var().item():.4f}")
