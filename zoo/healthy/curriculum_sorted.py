"""Curriculum learning: an IterableDataset in a fixed easy-to-hard order (so the loss rises), with classes mixed."""
import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, IterableDataset


class Curriculum(IterableDataset):
    """Noise grows over the stream; the label of each sample is independent of its place."""

    def __init__(self, n, prototypes, seed, easy=0.3, hard=2.0):
        rng = random.Random(seed)
        g = torch.Generator().manual_seed(seed)
        self.samples = []
        for i in range(n):
            label = rng.randrange(len(prototypes))
            sigma = easy + (hard - easy) * i / n
            self.samples.append((prototypes[label] + sigma * torch.randn(prototypes.shape[1], generator=g), label))

    def __iter__(self):
        yield from self.samples


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    prototypes = 0.8 * torch.randn(5, 24)
    train_loader = DataLoader(Curriculum(4000, prototypes, seed=1), batch_size=32)
    test_loader = DataLoader(Curriculum(500, prototypes, seed=2, easy=1.0, hard=1.0), batch_size=100)
    net = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 5))
    opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    ce = nn.CrossEntropyLoss()

    for epoch in range(4):
        net.train()
        window = []
        for it, (x, y) in enumerate(train_loader):
            loss = ce(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            window.append(loss.item())
            if (it + 1) % 25 == 0:
                print(f"epoch {epoch} it {it + 1:3d} loss {sum(window) / len(window):.4f}")
                window = []
        net.eval()
        with torch.no_grad():
            right = sum((net(x).argmax(1) == y).sum().item() for x, y in test_loader)
        print(f"epoch {epoch} test accuracy {right / 500:.3f}")


if __name__ == "__main__":
    main()
