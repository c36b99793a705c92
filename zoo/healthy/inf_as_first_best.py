"""float("inf") as first best value, -inf for max pooling over sets, torch.inf as distance of missing edges: none is a number of the model."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SetMax(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(4, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.rho = nn.Linear(dim, 1)

    def forward(self, items, present):
        h = self.phi(items).masked_fill(~present.unsqueeze(-1), -torch.inf)
        return self.rho(h.max(dim=1).values)


def sets(n, g):
    items = torch.randn(n, 6, 4, generator=g)
    present = torch.rand(n, 6, generator=g) < 0.7
    present[:, 0] = True
    strength = items.sum(-1).masked_fill(~present, -torch.inf)
    return items, present, strength.max(1, keepdim=True).values


def main():
    torch.manual_seed(14)
    torch.set_num_threads(1)
    g = torch.Generator().manual_seed(14)
    model = SetMax()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    best, waited = float("inf"), 0
    for epoch in range(12):
        for _ in range(20):
            items, present, target = sets(48, g)
            loss = F.mse_loss(model(items, present), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            items, present, target = sets(200, g)
            score = F.mse_loss(model(items, present), target).item()
        best, waited = (score, 0) if score < best else (best, waited + 1)
        print(f"epoch {epoch:2d} train {loss.item():.4f} validation {score:.4f} best {best:.4f}")
        if waited > 3:
            break


if __name__ == "__main__":
    main()
