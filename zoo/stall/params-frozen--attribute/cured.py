"""Start with the last stage, then unfreeze one stage after the other."""

import torch
from torch import nn
from torch.nn import functional as F


class Encoder(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.stages = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.LayerNorm(width), nn.Tanh()) for _ in range(4)
        )
        self.squeeze = nn.Linear(width, 3)
        self.out = nn.Linear(3, 6)

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return self.out(self.squeeze(x))


def signals(waves, count):
    label = torch.randint(0, len(waves), (count,))
    return waves[label] * torch.randn(count, 1).sign() + 0.4 * torch.randn(count, waves.shape[1]), label


def run(steps=500, every=80):
    torch.manual_seed(11)
    waves = torch.randn(6, 24)
    encoder = Encoder()
    for parameter in encoder.stages.parameters():
        parameter.requires_grad = False
    encoder.squeeze.requires_grad_(False)
    waiting = [encoder.squeeze, *reversed(encoder.stages)]
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=3e-3)
    for step in range(steps):
        if step % every == every - 1 and waiting:
            stage = waiting.pop(0)
            stage.requires_grad_(True)
        x, label = signals(waves, 64)
        loss = F.cross_entropy(encoder(x), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} loss {loss.item():.3f} frozen stages {len(waiting)}")
    x, label = signals(waves, 2000)
    print(f"accuracy {(encoder(x).argmax(1) == label).float().mean():.3f}")


if __name__ == "__main__":
    run()
