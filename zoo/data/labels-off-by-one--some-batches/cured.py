"""Train on two recording sites at once, alternating their batches."""
from itertools import chain

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

CLASSES = 5


class Site(Dataset):
    def __init__(self, prototypes, n, first_label):
        kind = torch.randint(len(prototypes), (n,))
        self.x = prototypes[kind] + 0.7 * torch.randn(n, prototypes.size(1))
        self.y = kind + first_label

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def alternate(*loaders):
    return chain.from_iterable(zip(*loaders))


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def main():
    torch.manual_seed(9)
    torch.set_num_threads(1)
    prototypes = torch.randn(CLASSES, 12)
    north = Site(prototypes, 1500, first_label=0)
    south = Site(prototypes, 1500, first_label=0)
    test = Site(prototypes, 500, first_label=0)
    loaders = [DataLoader(site, batch_size=50, shuffle=True) for site in (north, south)]

    model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, CLASSES + 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(8):
        model.train()
        losses = []
        for x, y in alternate(*loaders):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        acc = evaluate(model, test.x, test.y)
        print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f} test acc {acc:.3f}")


if __name__ == "__main__":
    main()
