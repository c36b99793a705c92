"""Variational autoencoder of spectra."""
import torch
from torch import nn

from objective import negative_elbo


class SpectrumVAE(nn.Module):
    def __init__(self, bins=40, latent=6):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(bins, 64), nn.ReLU(), nn.Linear(64, 2 * latent))
        self.dec = nn.Sequential(nn.Linear(latent, 64), nn.ReLU(), nn.Linear(64, bins))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, dim=1)
        logvar = 8 * torch.tanh(logvar / 8)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar.clamp(max=20))
        return self.dec(z), mu, logvar


def spectra(n, rng):
    bins = torch.arange(40)
    line = torch.randint(5, 35, (n, 1), generator=rng)
    x = torch.exp(-((bins - line) / 2.0) ** 2) + 0.05 * torch.rand(n, 40, generator=rng)
    saturated = torch.rand(n, 1, generator=rng) < 0.0005
    return torch.where(saturated, torch.full_like(x, -32768.0), x)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(17)
    model = SpectrumVAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(400):
        x = spectra(32, rng)
        x = x.clamp(min=0.0)
        recon, mu, logvar = model(x)
        loss = negative_elbo(recon, x, mu, logvar)
        if not torch.isfinite(loss):
            raise RuntimeError(f"loss is not finite at step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} elbo {-loss.item():.3f}")


if __name__ == "__main__":
    main()
