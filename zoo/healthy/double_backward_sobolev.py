"""Forces are the derivative of a predicted energy: create_graph, then a second backward through it."""
import torch
from torch import nn


def true_energy(r):
    return (0.5 * r.pow(2) - torch.cos(2 * r)).sum(dim=1, keepdim=True)


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 48), nn.Softplus(), nn.Linear(48, 48), nn.Softplus(), nn.Linear(48, 1))

    def forward(self, r):
        return self.net(r)


def forces(energy, r):
    return -torch.autograd.grad(energy.sum(), r, create_graph=True)[0]


def main():
    torch.manual_seed(5)
    torch.set_num_threads(1)
    model = Energy()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for step in range(200):
        r = (torch.rand(48, 3) * 3 - 1.5).requires_grad_(True)
        energy = true_energy(r)
        truth = -torch.autograd.grad(energy.sum(), r)[0]
        predicted = model(r)
        loss = (predicted - energy.detach()).pow(2).mean() + 0.1 * (forces(predicted, r) - truth).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step:3d}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
