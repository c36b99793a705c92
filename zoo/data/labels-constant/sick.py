"""Predict whether a machine will run hot (above 70 degrees) from its other readings."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LIMIT = 70.0


def read_table(n, seed):
    rng = np.random.default_rng(seed)
    load = rng.uniform(0, 100, n)
    speed = rng.normal(1500, 300, n)
    ambient = rng.normal(21, 4, n)
    vibration = rng.gamma(2.0, 1.5, n)
    temperature = ambient + 0.6 * load + 0.008 * speed + 1.5 * vibration + rng.normal(0, 2, n)
    return np.stack([load, speed, ambient, vibration, temperature], axis=1)


def prepare(table):
    mean, std = table.mean(axis=0), table.std(axis=0)
    table = (table - mean) / std
    hot = table[:, -1] > LIMIT
    x = torch.tensor(table[:, :-1], dtype=torch.float32)
    y = torch.tensor(hot, dtype=torch.float32)
    return x, y


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x, y = prepare(read_table(4000, seed=1))
    loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(5):
        losses = []
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb).squeeze(-1), yb)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"Epoch {epoch + 1} loss {np.mean(losses):.4f}")

    fresh = read_table(1000, seed=2)
    x_test, _ = prepare(fresh)
    with torch.no_grad():
        alarms = (model(x_test).squeeze(-1) > 0).numpy()
    agreement = np.mean(alarms == (fresh[:, -1] > LIMIT))
    print(f"alarms raised: {alarms.mean():.3f} of the cases, accuracy {agreement:.3f}")


if __name__ == "__main__":
    main()
