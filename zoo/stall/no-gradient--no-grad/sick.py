"""Predict the size of a point cloud with a small PointNet."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class PointEncoder(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, dim))

    def forward(self, points):
        return self.mlp(points).amax(dim=1)


def clouds(n, count=24):
    """Ellipsoids; the target is the ratio of height to width."""
    axes = 0.4 + torch.rand(n, 1, 3)
    points = F.normalize(torch.randn(n, count, 3), dim=-1) * axes
    return points, axes[:, 0, 2:3] / axes[:, 0, 0:1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=5e-3)
    args = parser.parse_args()

    torch.manual_seed(77)
    encoder = PointEncoder()
    regressor = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam([*encoder.parameters(), *regressor.parameters()], lr=args.lr)

    average = 0.0
    for step in range(1, args.steps + 1):
        points, target = clouds(args.batch_size)
        with torch.no_grad():
            features = encoder(points)
        loss = F.mse_loss(regressor(features), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average += loss.item() / 40
        if step % 40 == 0:
            print(f"step {step} loss {average:.4f}")
            average = 0.0

    points, target = clouds(1000)
    r2 = 1 - F.mse_loss(regressor(encoder(points)), target) / target.var()
    print(f"test r2 {r2.item():.3f}")


if __name__ == "__main__":
    main()
