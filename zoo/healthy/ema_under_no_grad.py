"""Weights of an average model are changed in place between forward and backward, under no_grad, and no graph needs them."""
import copy

import torch
from torch import nn


class Ema:
    def __init__(self, model, decay=0.98):
        self.decay, self.model = decay, copy.deepcopy(model).requires_grad_(False)

    @torch.no_grad()
    def update(self, live):
        for mean, now in zip(self.model.parameters(), live.parameters()):
            mean.mul_(self.decay).add_(now, alpha=1 - self.decay)
        for mean, now in zip(self.model.buffers(), live.buffers()):
            mean.copy_(now)


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(6, 48), nn.BatchNorm1d(48), nn.SiLU(), nn.Linear(48, 1))
    ema = Ema(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    w = torch.randn(6, 1)
    for step in range(200):
        x = torch.randn(48, 6)
        y = torch.sin(x @ w)
        loss = nn.functional.mse_loss(model(x), y)
        ema.update(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            ema.model.eval()
            print(f"step {step}: loss {loss.item():.4f}, averaged {nn.functional.mse_loss(ema.model(x), y).item():.4f}")


if __name__ == "__main__":
    main()
