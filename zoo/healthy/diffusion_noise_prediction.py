"""Denoising diffusion in two dimensions: the loss soon hovers at a high floor while the samples keep improving."""
import copy
import math

import torch
import torch.nn as nn

T = 20
betas = torch.linspace(1e-3, 0.35, T)
alpha_bar = torch.cumprod(1 - betas, 0)


class Denoiser(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2 + 8, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))

    def forward(self, x, t):
        angle = t[:, None] / T * math.pi * torch.tensor([0.5, 1.0, 2.0, 4.0])
        return self.net(torch.cat([x, angle.sin(), angle.cos()], 1))


def circle(n):
    a = torch.rand(n) * 2 * math.pi
    return torch.stack([a.cos(), a.sin()], 1) * 1.2 + 0.05 * torch.randn(n, 2)


@torch.no_grad()
def sample(model, n):
    x = torch.randn(n, 2)
    for t in reversed(range(T)):
        eps = model(x, torch.full((n,), t))
        x = (x - betas[t] / (1 - alpha_bar[t]).sqrt() * eps) / (1 - betas[t]).sqrt()
        if t:
            x = x + betas[t].sqrt() * torch.randn_like(x)
    return x


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Denoiser()
    ema = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    running = []
    for step in range(1, 1001):
        x0, t, noise = circle(128), torch.randint(0, T, (128,)), torch.randn(128, 2)
        ab = alpha_bar[t][:, None]
        loss = nn.functional.mse_loss(model(ab.sqrt() * x0 + (1 - ab).sqrt() * noise, t), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for e, p in zip(ema.parameters(), model.parameters()):
                e.lerp_(p, 0.02)
        running.append(loss.item())
        if step % 100 == 0:
            off = (sample(ema, 500).norm(dim=1) - 1.2).abs().mean().item()
            print(f"step {step} loss {sum(running) / len(running):.4f} distance of samples to the circle {off:.3f}")
            running = []


if __name__ == "__main__":
    main()
