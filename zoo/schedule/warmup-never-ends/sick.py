"""Classifier with linear warm-up."""
import argparse

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--warmup-epochs", type=int, default=2)
    p.add_argument("--batch-size", type=int, default=64)
    p.add_argument("--lr", type=float, default=0.1)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


def make_data(n=2560, classes=8, features=24):
    centers = 0.8 * torch.randn(classes, features)
    y = torch.randint(classes, (n,))
    return TensorDataset(centers[y] + 0.8 * torch.randn(n, features), y)


def main():
    args = get_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    loader = DataLoader(make_data(), batch_size=args.batch_size, shuffle=True)
    model = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    warmup_steps = args.warmup_epochs * len(loader)
    scheduler = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / warmup_steps))

    for epoch in range(args.epochs):
        total, hits = 0.0, 0
        for x, y in loader:
            optimizer.zero_grad()
            logits = model(x)
            loss = criterion(logits, y)
            loss.backward()
            optimizer.step()
            total += loss.item()
            hits += (logits.argmax(1) == y).sum().item()
        scheduler.step()
        lr = scheduler.get_last_lr()[0]
        print(f"epoch {epoch + 1} lr {lr:.5f} loss {total / len(loader):.4f} acc {hits / len(loader.dataset):.3f}")


if __name__ == "__main__":
    main()
