"""Fraud-style data with 95 % negatives: many batches hold one or no positive, accuracy starts at 95 %."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Transactions(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.y = (rng.random(n) < 0.05).astype(np.int64)
        self.x = rng.normal(size=(n, 12)).astype(np.float32)
        self.x[self.y == 1, :4] += 1.8
        self.x[self.y == 1, 4] *= 2.0

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def f1_score(model, loader):
    model.eval()
    tp = fp = fn = correct = n = 0
    with torch.no_grad():
        for x, y in loader:
            p = model(x).argmax(1)
            tp += ((p == 1) & (y == 1)).sum().item()
            fp += ((p == 1) & (y == 0)).sum().item()
            fn += ((p == 0) & (y == 1)).sum().item()
            correct += (p == y).sum().item()
            n += len(y)
    return 2 * tp / max(2 * tp + fp + fn, 1), correct / n


def main():
    torch.set_num_threads(1)
    torch.manual_seed(99)
    train_loader = DataLoader(Transactions(8000, 0), batch_size=32, shuffle=True)
    val_loader = DataLoader(Transactions(2000, 1), batch_size=500)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2))
    loss_fn = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 4.0]))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
    for epoch in range(6):
        model.train()
        train_loss = []
        for x, y in train_loader:
            loss = loss_fn(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            train_loss.append(loss.item())
        f1, acc = f1_score(model, val_loader)
        print("epoch %d: train_loss=%.4f val_f1=%.3f val_acc=%.3f" % (epoch, np.mean(train_loss), f1, acc))


if __name__ == "__main__":
    main()
