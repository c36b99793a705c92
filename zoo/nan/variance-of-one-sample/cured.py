import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Whiten(nn.Module):
    """Standardises each feature over the batch, without running statistics."""

    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(dim))
        self.shift = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        x = (x - x.mean(dim=0)) / (x.std(dim=0) + self.eps)
        return self.gain * x + self.shift


def robot_arm(n):
    """Where the hand is, from three joint angles."""
    q = torch.rand(n, 3) * 3 - 1.5
    a, b, c = q[:, 0], q[:, 0] + q[:, 1], q.sum(1)
    hand = torch.stack([a.cos() + 0.7 * b.cos() + 0.4 * c.cos(), a.sin() + 0.7 * b.sin() + 0.4 * c.sin()], 1)
    return q, hand


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    x, y = robot_arm(1025)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True, drop_last=True)
    model = nn.Sequential(nn.Linear(3, 64), Whiten(64), nn.Tanh(), nn.Linear(64, 64), Whiten(64), nn.Tanh(), nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    mse = nn.MSELoss()
    for epoch in range(10):
        total = 0.0
        for q, hand in loader:
            loss = mse(model(q), hand)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(q)
        print(f"epoch {epoch + 1:2d}/10  mse {total / len(x):.5f}")


if __name__ == "__main__":
    main()
