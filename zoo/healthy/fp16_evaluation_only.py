"""Trains in 32 bit; only the evaluation runs under fp16 autocast, and no scaler exists."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def rings(n, g):
    radius = torch.randint(1, 4, (n,), generator=g)
    angle = 6.2832 * torch.rand(n, generator=g)
    r = radius + 0.15 * torch.randn(n, generator=g)
    return TensorDataset(torch.stack([r * angle.cos(), r * angle.sin()], 1), radius - 1)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hits = 0
    with torch.autocast("cpu", dtype=torch.float16):
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum().item()
    model.train()
    return hits / len(loader.dataset)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(5)
    g = torch.Generator().manual_seed(5)
    train, test = DataLoader(rings(900, g), batch_size=30, shuffle=True), DataLoader(rings(300, g), batch_size=100)
    model = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(6):
        for x, y in train:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        print(f"epoch {epoch}  accuracy in half precision {evaluate(model, test):.3f}")


if __name__ == "__main__":
    main()
