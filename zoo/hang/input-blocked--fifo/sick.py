"""A run that can be steered while it goes: write a new learning rate into the control file."""

import os
import tempfile

import torch
import torch.nn as nn


class Control:
    def __init__(self, folder):
        self.path = os.path.join(folder, "control")
        os.mkfifo(self.path)
        print("echo lr=0.01 >", self.path, flush=True)

    def read(self):
        """Commands since the last call."""
        with open(self.path) as commands:
            return [line.strip().partition("=")[::2] for line in commands if "=" in line]


def rings(n):
    angle = torch.rand(n) * 6.283
    label = torch.randint(0, 2, (n,))
    radius = 1.0 + label + 0.2 * torch.randn(n)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), label.float()


def train(epochs=3, steps=20):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    criterion = nn.BCEWithLogitsLoss()
    control = Control(tempfile.mkdtemp())
    for epoch in range(epochs):
        for _ in range(steps):
            points, labels = rings(64)
            loss = criterion(model(points), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)
        for name, value in control.read():
            if name == "lr":
                for group in optimizer.param_groups:
                    group["lr"] = float(value)


train()
