"""Norms of vectors that are exactly zero: torch's own norm has a subgradient there, F.normalize an eps, cdist a zero diagonal."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Sets(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(5, 32, bias=False), nn.ReLU(), nn.Linear(32, dim, bias=False))

    def forward(self, points):
        return self.embed(points)


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    model = Sets()
    proxies = nn.Parameter(torch.randn(4, 16))
    optimizer = torch.optim.Adam([*model.parameters(), proxies], lr=5e-3)
    means = torch.randn(4, 5)
    for step in range(160):
        label = torch.randint(0, 4, (32,))
        points = means[label] + 0.4 * torch.randn(32, 5)
        points[:2] = 0.0
        z = model(points)
        spread = torch.cdist(z, z).mean()
        logits = 8 * F.normalize(z, dim=1) @ F.normalize(proxies, dim=1).t()
        loss = F.cross_entropy(logits[2:], label[2:]) + 1e-3 * z.norm(dim=1).mean() + 1e-3 * spread
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step:3d} loss {loss.item():.4f} smallest norm {z.norm(dim=1).min().item():.4f}")


if __name__ == "__main__":
    main()
