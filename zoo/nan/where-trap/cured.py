"""Small-angle scattering: fits atom positions' spread and the form factors so that the Debye curve matches the measurement."""
import torch
from torch import nn


def sinc(r):
    safe = torch.where(r > 0, r, torch.ones_like(r))
    return torch.where(r > 0, torch.sin(safe) / safe, torch.ones_like(r))


class Debye(nn.Module):
    def __init__(self, positions, species, scale=1.0):
        super().__init__()
        self.register_buffer("positions", positions)
        self.register_buffer("species", species)
        self.log_scale = nn.Parameter(torch.tensor(float(scale)).log())
        self.form = nn.Parameter(torch.ones(int(species.max()) + 1))

    def forward(self, q):
        distance = torch.cdist(self.positions, self.positions) * self.log_scale.exp()
        f = self.form[self.species]
        pair = f[:, None] * f[None, :]
        return (pair * sinc(q[:, None, None] * distance)).mean(dim=(1, 2))


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    positions, species = 3 * torch.randn(20, 3), torch.randint(0, 3, (20,))
    truth = Debye(positions, species, scale=1.3)
    truth.form.data = torch.tensor([1.5, 0.6, 1.0])
    q = torch.linspace(0.05, 2.0, 80)
    with torch.no_grad():
        measured = truth(q) + 0.01 * torch.randn(len(q))

    model = Debye(positions, species)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for step in range(1, 201):
        optimizer.zero_grad()
        loss = (model(q) - measured).pow(2).mean()
        loss.backward()
        optimizer.step()
        if step == 1 or step % 40 == 0:
            print(f"step {step:3d}: chi2 {loss.item():.6f}, scale {model.log_scale.exp().item():.4f}")


if __name__ == "__main__":
    main()
