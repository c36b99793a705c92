"""GAN for one-dimensional bumps."""
import torch
import torch.nn as nn

bce = nn.BCEWithLogitsLoss()


class Generator(nn.Module):
    def __init__(self, z=6, n=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(z, 48), nn.ReLU(), nn.Linear(48, n), nn.Tanh())

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self, n=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))

    def forward(self, x):
        return self.net(x)


def bumps(n):
    grid = torch.linspace(-1, 1, 24)
    centre = torch.rand(n, 1) - 0.5
    return torch.exp(-20 * (grid - centre) ** 2)


def main():
    torch.manual_seed(9)
    torch.set_num_threads(1)
    G, D = Generator(), Discriminator()
    opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.999))
    ones, zeros = torch.ones(32, 1), torch.zeros(32, 1)
    for it in range(200):
        real, fake = bumps(32), G(torch.randn(32, 6))
        score_real, score_fake = D(real), D(fake)
        d_loss = bce(score_real, ones) + bce(score_fake, zeros)
        g_loss = bce(score_fake, ones)

        opt_d.zero_grad()
        d_loss.backward(retain_graph=True)
        opt_d.step()

        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()
        if it % 40 == 0:
            print(f"[{it}] D {d_loss.item():.4f} G {g_loss.item():.4f}")


if __name__ == "__main__":
    main()
