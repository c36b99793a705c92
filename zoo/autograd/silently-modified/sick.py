"""Wasserstein GAN on a ring of points, with weight clipping."""
import math

import torch
import torch.nn as nn


def ring(n):
    angle = 2 * math.pi * torch.rand(n, 1)
    return torch.cat([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(n, 2)


def mlp(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, 48), nn.LeakyReLU(0.2), nn.Linear(48, 48), nn.LeakyReLU(0.2), nn.Linear(48, n_out))


def critic_step(critic, generator, optimizer, batch=64):
    with torch.no_grad():
        fake = generator(torch.randn(batch, 4))
    loss = critic(fake).mean() - critic(ring(batch)).mean()
    for p in critic.parameters():
        p.data.clamp_(-0.05, 0.05)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return -loss.item()


def generator_step(critic, generator, optimizer, batch=64):
    loss = -critic(generator(torch.randn(batch, 4))).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(6)
    torch.set_num_threads(1)
    generator, critic = mlp(4, 2), mlp(2, 1)
    opt_g = torch.optim.RMSprop(generator.parameters(), lr=1e-3)
    opt_c = torch.optim.RMSprop(critic.parameters(), lr=1e-3)
    for it in range(150):
        for _ in range(3):
            distance = critic_step(critic, generator, opt_c)
        g_loss = generator_step(critic, generator, opt_g)
        if it % 25 == 0:
            with torch.no_grad():
                radius = generator(torch.randn(500, 4)).norm(dim=1)
            print(f"{it:4d}  distance {distance:.5f}  g {g_loss:+.5f}  radius {radius.mean():.3f} +- {radius.std():.3f}")


if __name__ == "__main__":
    main()
