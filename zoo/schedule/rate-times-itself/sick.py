"""Predicts the next value of a damped oscillation from the last twenty."""

import math

import torch
from torch import nn

SETTINGS = {"rate": 0.004, "floor": 1e-5, "ramp": 20, "steps": 400, "batch": 48, "seen": 20}


class Trace(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(SETTINGS["seen"], width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.head = nn.Linear(width, 1)

    def forward(self, past):
        return self.head(self.body(past))[:, 0]


def planned(peak, floor, ramp, total):
    def at(step):
        if step < ramp:
            return peak * (step + 1) / ramp
        done = (step - ramp) / (total - ramp)
        return floor + (peak - floor) * (1 + math.cos(math.pi * done)) / 2

    return at


def draw(generator):
    size, seen = SETTINGS["batch"], SETTINGS["seen"]
    time = torch.arange(seen + 1)
    speed = 0.2 + 0.5 * torch.rand(size, 1, generator=generator)
    phase = 6.3 * torch.rand(size, 1, generator=generator)
    wave = 2 * torch.exp(-0.02 * time) * torch.sin(speed * time + phase)
    wave = wave + 0.05 * torch.randn(wave.shape, generator=generator)
    return wave[:, :seen], wave[:, seen]


def fit():
    torch.manual_seed(8)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(8)
    model = Trace()
    optimizer = torch.optim.AdamW(model.parameters(), lr=SETTINGS["rate"])
    plan = planned(SETTINGS["rate"], SETTINGS["floor"], SETTINGS["ramp"], SETTINGS["steps"])
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, plan)
    for step in range(SETTINGS["steps"]):
        past, following = draw(generator)
        loss = nn.functional.mse_loss(model(past), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 40 == 0 or step == SETTINGS["steps"] - 1:
            print(f"{step:4d}  mse {loss.item():.4f}  rate {schedule.get_last_lr()[0]:.2e}")


if __name__ == "__main__":
    fit()
