"""A denoiser that works in linear light and is compared in sRGB."""
import torch
import torch.nn as nn


class Denoiser(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1), nn.ReLU(True), nn.Conv2d(width, width, 3, padding=1), nn.ReLU(True),
            nn.Conv2d(width, 3, 3, padding=1),
        )

    def forward(self, noisy, aperture):
        return (noisy - self.net(noisy)).clamp(0, 1) * aperture


def to_srgb(x):
    return torch.where(x <= 0.0031308, 12.92 * x, 1.055 * x ** (1 / 2.4) - 0.055)


def pictures(n, rng, side=16):
    flat = torch.rand(n, 3, 1, 1, generator=rng)
    ramp = torch.linspace(0, 1, side)
    clean = (flat * ramp[None, None, :, None] * ramp.flip(0)[None, None, None, :]) * 2
    return (clean + 0.08 * torch.randn(clean.shape, generator=rng)).clamp(0, 1), clean.clamp(0, 1)


def main(steps=120):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(0)
    grid = torch.linspace(-1, 1, 16)
    aperture = (grid[:, None] ** 2 + grid[None, :] ** 2 < 1).float()
    model = Denoiser()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    l1 = nn.L1Loss()
    for step in range(steps):
        noisy, clean = pictures(8, rng)
        loss = l1(to_srgb(model(noisy, aperture)), to_srgb(clean * aperture))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            print(f"{step:4d}: L1 {loss.item():.4f}")


if __name__ == "__main__":
    main()
