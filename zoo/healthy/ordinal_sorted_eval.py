"""Ordinal regression whose validation set is sorted by grade and not shuffled: each validation batch has one label."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

GRADES = 5


class CumulativeLink(nn.Module):
    """P(grade > k) = sigmoid(score - threshold_k), thresholds in increasing order."""

    def __init__(self):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 1))
        self.first = nn.Parameter(torch.tensor(-2.0))
        self.gaps = nn.Parameter(torch.zeros(GRADES - 2))

    def forward(self, x):
        thresholds = torch.cat([self.first.view(1), self.first + nn.functional.softplus(self.gaps).cumsum(0)])
        return self.score(x) - thresholds


def levels(grade):
    return (grade[:, None] > torch.arange(GRADES - 1)).float()


def patients(n):
    x = torch.randn(n, 10)
    severity = x[:, 0] + 0.8 * x[:, 1] - 0.6 * x[:, 2] * x[:, 3] + 0.2 * torch.randn(n)
    return x, torch.bucketize(severity, torch.tensor([-1.2, -0.4, 0.4, 1.2]))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = patients(2500)
    xv, yv = patients(500)
    order = yv.argsort(stable=True)
    train_loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    val_loader = DataLoader(TensorDataset(xv[order], yv[order]), batch_size=20, shuffle=False)

    model = CumulativeLink()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(12):
        model.train()
        train_loss = 0.0
        for xb, yb in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), levels(yb))
            loss.backward()
            optimizer.step()
            train_loss += loss.item() / len(train_loader)
        model.eval()
        val_loss, off = 0.0, 0.0
        with torch.no_grad():
            for xb, yb in val_loader:
                out = model(xb)
                val_loss += criterion(out, levels(yb)).item() / len(val_loader)
                off += ((out > 0).sum(1) - yb).abs().sum().item() / 500
        print(f"{epoch:2d} train_loss={train_loss:.4f} val_loss={val_loss:.4f} mean grade error={off:.3f}")


if __name__ == "__main__":
    main()
