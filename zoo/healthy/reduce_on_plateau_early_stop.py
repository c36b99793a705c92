"""ReduceLROnPlateau takes the rate down a thousandfold at the end, and early stopping ends a run that has converged."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class EarlyStopping:
    def __init__(self, patience=6, min_delta=1e-4):
        self.patience, self.min_delta, self.best, self.bad = patience, min_delta, float("inf"), 0

    def __call__(self, loss):
        if loss < self.best - self.min_delta:
            self.best, self.bad = loss, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.rand(1800, 5) * 2 - 1
    y = torch.exp(-x.pow(2).sum(1, keepdim=True)) + 0.1 * torch.randn(1800, 1)
    train = DataLoader(TensorDataset(x[:1500], y[:1500]), batch_size=50, shuffle=True)

    model = nn.Sequential(nn.Linear(5, 48), nn.Tanh(), nn.Linear(48, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=1, min_lr=1e-6)
    stop = EarlyStopping()
    for epoch in range(60):
        total = 0.0
        for xb, yb in train:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(xb), yb)
            loss.backward()
            optimizer.step()
            total += loss.item() / len(train)
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x[1500:]), y[1500:]).item()
        print(f"epoch {epoch:2d}  loss {total:.5f}  val {val:.5f}  lr {optimizer.param_groups[0]['lr']:.0e}")
        scheduler.step(val)
        if stop(val):
            print("early stopping")
            break


if __name__ == "__main__":
    main()
