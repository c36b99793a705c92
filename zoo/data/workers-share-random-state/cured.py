"""Learns to read the slope of a noisy line from points that are drawn while it trains."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Lines(IterableDataset):
    def __init__(self, count, points, seed):
        super().__init__()
        self.count = count
        self.points = points
        self.draw = random.Random(seed)

    def one(self):
        slope = self.draw.uniform(-2, 2)
        start = self.draw.uniform(-1, 1)
        at = [self.draw.uniform(-1, 1) for _ in range(self.points)]
        values = [start + slope * x + self.draw.gauss(0, 0.3) for x in at]
        return torch.tensor([at, values]), torch.tensor(slope)

    def __iter__(self):
        worker = get_worker_info()
        if worker is not None:
            self.draw = random.Random(worker.seed)
        for _ in range(self.count):
            yield self.one()


class Reader(nn.Module):
    def __init__(self, points, width=96):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(2 * points, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 1))

    def forward(self, pairs):
        return self.layers(pairs)[:, 0]


def run(epochs=6, points=12):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Lines(640, points, seed=5), batch_size=32, num_workers=2)
    held_out = torch.utils.data.default_collate(list(Lines(400, points, seed=77)))
    model = Reader(points)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(epochs):
        total, count = 0.0, 0
        for pairs, slope in loader:
            loss = nn.functional.mse_loss(model(pairs), slope)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, count = total + loss.item(), count + 1
        model.eval()
        with torch.no_grad():
            error = (model(held_out[0]) - held_out[1]).square().mean().item()
        model.train()
        print(f"epoch {epoch} train {total / count:.4f} held out {error:.4f}")


if __name__ == "__main__":
    run()
