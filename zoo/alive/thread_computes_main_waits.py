"""Nearest neighbours are computed with NumPy on a thread while the main thread waits for the result."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
import torch.nn as nn


def refine_centres(points, k, seconds):
    """Restarts k-means until the time is over; the best centres win."""
    rng = np.random.default_rng(0)
    best, best_cost = None, np.inf
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        centres = points[rng.choice(len(points), k, replace=False)]
        for _ in range(20):
            distance = ((points[:, None] - centres[None]) ** 2).sum(-1)
            nearest = distance.argmin(1)
            centres = np.stack([points[nearest == c].mean(0) if (nearest == c).any() else centres[c] for c in range(k)])
        cost = distance.min(1).sum()
        if cost < best_cost:
            best, best_cost = centres, cost
    return best


def train(features, labels, steps=50):
    model = nn.Sequential(nn.Linear(features.shape[1], 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(features), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    labels = torch.randint(0, 3, (3000,))
    x = torch.randn(3000, 8) + 1.2 * nn.functional.one_hot(labels, 8)
    print(f"raw: loss {train(x, labels):.4f}", flush=True)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(refine_centres, x.numpy(), 24, 10)
        centres = torch.from_numpy(future.result()).float()
    print(f"distances to centres: loss {train(torch.cdist(x, centres), labels):.4f}", flush=True)


if __name__ == "__main__":
    main()
