"""Credit default prediction on bank records."""
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def load_records(n, seed):
    rng = np.random.default_rng(seed)
    income = rng.normal(42000, 12000, n).clip(8000)
    debt = rng.gamma(2.0, 6000.0, n)
    age = rng.uniform(20, 70, n)
    rate = rng.normal(0.05, 0.012, n)
    late = rng.poisson(1.2, n)
    z = 2.2 * (debt - 12000) / 8500 - 2.0 * (income - 42000) / 12000 + 0.8 * (late - 1.2) + 0.6 * (rate - 0.05) / 0.012
    default = (z + rng.logistic(0, 0.5, n) > 0).astype(np.float32)
    return np.stack([income, debt, age, rate, late], axis=1).astype(np.float32), default


class DefaultModel(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.fc1 = nn.Linear(features, 32)
        self.fc2 = nn.Linear(32, 16)
        self.fc3 = nn.Linear(16, 1)

    def forward(self, x):
        x = torch.tanh(self.fc1(x))
        x = torch.tanh(self.fc2(x))
        return torch.sigmoid(self.fc3(x)).squeeze(-1)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    features, default = load_records(4000, seed=0)
    x, y = torch.from_numpy(features), torch.from_numpy(default)
    loader = DataLoader(TensorDataset(x[:3200], y[:3200]), batch_size=64, shuffle=True)
    model = DefaultModel(x.size(1))
    criterion = nn.BCELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(8):
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        with torch.no_grad():
            acc = ((model(x[3200:]) > 0.5) == (y[3200:] > 0.5)).float().mean().item()
        print(f"epoch {epoch + 1}: loss={total / len(loader):.4f}, test_acc={acc:.3f}")


if __name__ == "__main__":
    main()
