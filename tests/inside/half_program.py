"""Trains in half precision, each way a few steps, and prints every number to the bit; then says what stands where the clip functions are."""

import hashlib

import torch
from torch import nn
from torch.nn import functional as F

STEPS = 25


def finish(name, losses, parameters):
    numbers = b"".join(parameter.detach().float().numpy().tobytes() for parameter in parameters)
    print(name, *(loss.hex() for loss in losses))
    print(name, "weights", hashlib.sha256(numbers).hexdigest()[:16])


def network():
    return nn.Sequential(nn.Linear(8, 24), nn.LayerNorm(24), nn.ReLU(inplace=True), nn.Linear(24, 3))


def batch():
    return torch.randn(16, 8), torch.randint(0, 3, (16,))


def scaled(dtype):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24, growth_interval=5)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(2):
            x, y = batch()
            with torch.autocast("cpu", dtype=dtype):
                loss = F.cross_entropy(model(x), y) / 2
            scaler.scale(loss).backward()
            losses.append(loss.item())
        scaler.unscale_(optimizer)
        losses.append(nn.utils.clip_grad_norm_(model.parameters(), 0.5).item())
        scaler.step(optimizer)
        scaler.update()
    finish(f"scaled {dtype}", losses, model.parameters())


def half_weights(dtype):
    model = network().to(dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, eps=1e-3)
    losses = []
    for _ in range(STEPS):
        x, y = batch()
        loss = F.cross_entropy(model(x.to(dtype)), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.1)
        optimizer.step()
        losses.append(loss.item())
    finish(f"weights of {dtype}", losses, model.parameters())


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return 2 * x.float() @ weight.float()

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return 2 * grad @ weight.t(), 2 * x.t() @ grad


def under_autocast():
    weight = nn.Parameter(torch.randn(8, 3))
    optimizer = torch.optim.SGD([weight], lr=0.05)
    losses = []
    for _ in range(STEPS):
        x, y = batch()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(Twice.apply(x, weight), y)
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        losses.append(loss.item())
    finish("under autocast", losses, [weight])


torch.manual_seed(0)
scaled(torch.float16)
scaled(torch.bfloat16)
half_weights(torch.float16)
half_weights(torch.bfloat16)
under_autocast()
clip = nn.utils.clip_grad_norm_
print(clip.__name__, clip.__module__, clip is nn.utils.clip_grad.clip_grad_norm_)
