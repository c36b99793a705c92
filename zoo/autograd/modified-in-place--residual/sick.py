"""Residual network on waveforms, functions instead of modules for the loop."""
import torch
from torch import nn, optim


class TanhBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm1d(width)
        self.conv = nn.Conv1d(width, width, 3, padding=1)

    def forward(self, x):
        out = torch.tanh(self.conv(self.norm(x)))
        out += x
        return out


def build():
    return nn.Sequential(nn.Conv1d(1, 16, 5, padding=2), TanhBlock(16), TanhBlock(16), nn.AdaptiveAvgPool1d(4), nn.Flatten(),
                         nn.Linear(64, 3))


def waves(n):
    kind = torch.randint(0, 3, (n,))
    t = torch.linspace(0, 6.28, 40)
    phase = 6.28 * torch.rand(n, 1)
    sine = torch.sin(3 * t + phase)
    shapes = torch.stack([sine, sine.sign(), sine.abs() * 2 - 1], dim=1)
    return shapes[torch.arange(n), kind].unsqueeze(1) + 0.1 * torch.randn(n, 1, 40), kind


def run(model, steps):
    opt = optim.Adam(model.parameters(), lr=4e-3)
    for i in range(steps):
        x, y = waves(32)
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        yield i, loss.item()


if __name__ == "__main__":
    torch.manual_seed(9)
    torch.set_num_threads(1)
    for i, value in run(build(), 120):
        if i % 20 == 0:
            print(f"iter {i:3d}: {value:.4f}")
