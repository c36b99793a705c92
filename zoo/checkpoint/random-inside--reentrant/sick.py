"""Convolutional regressor with random gain per layer as augmentation, checkpointed."""
import random

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class JitterConv(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3, padding=1)

    def forward(self, x):
        scale = 1.0 + 0.5 * random.gauss(0.0, 1.0)
        return x + torch.tanh(self.conv(x * scale))


class Regressor(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.stem = nn.Conv1d(1, width, 3, padding=1)
        self.layers = nn.ModuleList(JitterConv(width) for _ in range(3))
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=True)
        return self.head(x.mean(-1))


def main():
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Regressor()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(150):
        amplitude = torch.rand(32, 1)
        signal = amplitude * torch.sin(torch.linspace(0, 12, 32) + 6.28 * torch.rand(32, 1))
        loss = nn.functional.mse_loss(model(signal.unsqueeze(1)), amplitude)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step:3d} mse {loss.item():.4f}")


if __name__ == "__main__":
    main()
