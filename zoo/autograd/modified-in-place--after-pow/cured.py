"""Fits spring constants so that a simulated chain loses energy as the measured one does."""
import torch
from torch import nn


class Chain(nn.Module):
    def __init__(self, n=5, damping=0.98):
        super().__init__()
        self.stiffness = nn.Parameter(torch.ones(n))
        self.damping = damping

    def forward(self, position, steps=12, dt=0.1):
        velocity = torch.zeros_like(position) + 0.0 * self.stiffness
        energies = []
        for _ in range(steps):
            velocity = velocity - dt * self.stiffness * position
            position = position + dt * velocity
            energies.append((0.5 * velocity ** 2 + 0.5 * self.stiffness * position ** 2).sum(-1))
            velocity = velocity * self.damping
        return torch.stack(energies, dim=-1)


def main():
    torch.manual_seed(3)
    torch.set_num_threads(1)
    truth = Chain()
    truth.stiffness.data = torch.tensor([0.6, 1.4, 2.0, 0.9, 1.7])
    model = Chain()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for iteration in range(100):
        start = torch.randn(16, 5)
        with torch.no_grad():
            measured = truth(start)
        loss = (model(start) - measured).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if iteration % 20 == 0:
            print(f"iteration {iteration}: {loss.item():.5f}")


if __name__ == "__main__":
    main()
