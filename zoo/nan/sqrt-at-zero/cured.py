"""Metric learning: embeds noisy outlines of twelve shapes with a batch-hard triplet loss."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class OutlineEncoder(nn.Module):
    def __init__(self, points=24, width=96, dim=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(points * 2, width), nn.ReLU(), nn.Linear(width, dim))

    def forward(self, outline):
        return self.net(outline.flatten(1))


def pairwise_distance(z):
    norms = (z * z).sum(dim=1)
    squared = norms[:, None] + norms[None, :] - 2 * z @ z.t()
    return squared.clamp(min=1e-8).sqrt()


def batch_hard(z, label, margin=0.5):
    distance = pairwise_distance(z)
    same = label[:, None] == label[None, :]
    hardest_positive = distance.masked_fill(~same, 0.0).max(dim=1).values
    hardest_negative = distance.masked_fill(same, 1e4).min(dim=1).values
    return F.relu(hardest_positive - hardest_negative + margin).mean()


def sample_batch(rng, per_class=4, classes=12, points=24):
    label = torch.arange(classes).repeat_interleave(per_class)
    angle = torch.linspace(0, 2 * math.pi, points + 1)[:-1]
    radius = 1 + 0.4 * torch.cos((label % 6 + 2)[:, None] * angle) * (1 - 0.5 * (label // 6))[:, None]
    outline = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=-1)
    return outline + 0.08 * torch.randn(outline.shape, generator=rng), label


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rng = torch.Generator().manual_seed(0)
    encoder = OutlineEncoder()
    optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
    for iteration in range(1, 121):
        outline, label = sample_batch(rng)
        loss = batch_hard(encoder(outline), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if iteration % 20 == 1:
            print(f"iteration {iteration:4d}: triplet loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
