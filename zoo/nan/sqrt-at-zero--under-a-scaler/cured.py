"""Sorts short vibration traces by machine: traces of one machine are pulled together, others pushed apart."""

import torch
from torch import nn

MACHINES, PER_MACHINE, LENGTH = 6, 5, 48


class Encoder(nn.Module):
    def __init__(self, width=40, out=12):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(LENGTH, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, out))

    def forward(self, trace):
        return nn.functional.normalize(self.body(trace), dim=1)


def apart(codes):
    gaps = codes.unsqueeze(0) - codes.unsqueeze(1)
    return (gaps.square().sum(-1) + 1e-9).sqrt()


def spread_loss(codes, machine, margin=0.8):
    distance = apart(codes)
    same = machine.unsqueeze(0) == machine.unsqueeze(1)
    pull = distance[same].mean()
    push = (margin - distance[~same]).clamp(min=0).mean()
    return pull + push


def traces(generator, shapes):
    machine = torch.arange(MACHINES).repeat_interleave(PER_MACHINE)
    return shapes[machine] + 0.8 * torch.randn(len(machine), LENGTH, generator=generator), machine


def learn(steps=240):
    torch.manual_seed(4)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(9)
    shapes = torch.randn(MACHINES, LENGTH, generator=generator)
    encoder = Encoder()
    optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for step in range(steps):
        trace, machine = traces(generator, shapes)
        with torch.autocast("cpu", dtype=torch.float16):
            codes = encoder(trace)
        loss = spread_loss(codes.float(), machine)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if step % 40 == 0 or step == steps - 1:
            print(f"{step:3d} spread {loss.item():.4f}")


if __name__ == "__main__":
    learn()
