"""Removes noise from spectra with a small residual network."""

import torch
import torch.nn as nn


class Denoiser(nn.Module):
    def __init__(self, channels=24):
        super().__init__()
        self.first = nn.Conv1d(1, channels, 7, padding=3)
        self.second = nn.Conv1d(channels, channels, 7, padding=3)
        self.last = nn.Conv1d(channels, 1, 7, padding=3)

    def forward(self, x):
        h = torch.relu(self.first(x))
        h = torch.relu(self.second(h)) + h
        return x - self.last(h)


def spectra(n, generator, bins=128):
    """Reflectances: peaks of a few thousandths on a flat ground."""
    centre = torch.rand(n, 3, 1, generator=generator) * bins
    peaks = torch.exp(-((torch.arange(bins) - centre) ** 2) / 18).sum(1, keepdim=True)
    clean = 4e-3 * peaks
    return clean + 1e-3 * torch.randn(clean.shape, generator=generator), clean


def main():
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(1)
    model = Denoiser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu")
    for step in range(120):
        noisy, clean = spectra(64, generator)
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
