"""Learns to fill in the missing half of a spectrum, with a critic that tells real halves from filled ones."""

import torch
from torch import nn

BANDS = 24
torch.manual_seed(11)
MIXING = torch.randn(BANDS, BANDS) / BANDS**0.5


def batch(size=48):
    known = torch.randn(size, BANDS)
    return known, torch.tanh(known @ MIXING)


class Filler(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(BANDS, 96), nn.ReLU(), nn.Linear(96, BANDS))

    def forward(self, known):
        return self.layers(known)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2 * BANDS, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))

    def forward(self, known, rest):
        return self.layers(torch.cat([known, rest], dim=1))


def main():
    filler, critic = Filler(), Critic()
    of_filler = torch.optim.SGD(filler.parameters(), lr=0.1, momentum=0.9)
    of_critic = torch.optim.SGD(critic.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
    verdict, distance = nn.BCEWithLogitsLoss(), nn.L1Loss()
    for step in range(500):
        known, rest = batch()
        real, made = torch.ones(len(known), 1), torch.zeros(len(known), 1)
        with torch.autocast("cpu", dtype=torch.float16):
            filled = filler(known)
            critic_loss = verdict(critic(known, rest), real) + verdict(critic(known, filled.detach()), made)
        of_critic.zero_grad()
        scaler.scale(critic_loss).backward()
        scaler.step(of_critic)

        with torch.autocast("cpu", dtype=torch.float16):
            error = distance(filled.float(), rest)
            filler_loss = 0.1 * verdict(critic(known, filled), real) + 5 * error
        of_filler.zero_grad()
        scaler.scale(filler_loss).backward()
        scaler.step(of_filler)
        scaler.update()
        if step % 50 == 0:
            print(f"step {step} critic {critic_loss.item():.4f} error {error.item():.4f}")


if __name__ == "__main__":
    main()
