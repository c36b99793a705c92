"""Removes noise from spectra with a small residual network."""

import torch
import torch.nn as nn


class Denoiser(nn.Module):
    def __init__(self, channels=12):
        super().__init__()
        self.first = nn.Conv1d(1, channels, 7, padding=3)
        self.second = nn.Conv1d(channels, channels, 7, padding=3)
        self.last = nn.Conv1d(channels, 1, 7, padding=3)
        nn.init.normal_(self.last.weight, std=1e-3)
        nn.init.zeros_(self.last.bias)

    def forward(self, x):
        h = torch.relu(self.first(x))
        h = torch.relu(self.second(h)) + h
        return x - self.last(h)


def spectra(n, generator, bins=96):
    """Reflectances: peaks of a few ten-thousandths on a flat ground."""
    centre = torch.rand(n, 3, 1, generator=generator) * bins
    peaks = torch.exp(-((torch.arange(bins) - centre) ** 2) / 18).sum(1, keepdim=True)
    clean = 4e-4 * peaks
    return clean + 1e-4 * torch.randn(clean.shape, generator=generator), clean


def main():
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(1)
    model = Denoiser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    scaler = torch.amp.GradScaler("cpu", init_scale=1.0, growth_interval=100_000)
    for step in range(90):
        noisy, clean = spectra(32, generator)
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.mse_loss(model(noisy), clean)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        if step % 20 == 0:
            print(f"step {step:3d}  rmse {loss.item() ** 0.5:.2e}")


if __name__ == "__main__":
    main()
