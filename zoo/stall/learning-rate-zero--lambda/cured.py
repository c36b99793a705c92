import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset


def linear_decay(step, total_steps):
    return (total_steps - step - 1) / total_steps


def ratings(users, items, n):
    """Star ratings from a low-rank taste model."""
    taste = torch.randn(users, 3)
    style = torch.randn(items, 3)
    u = torch.randint(0, users, (n,))
    i = torch.randint(0, items, (n,))
    return u, i, (taste[u] * style[i]).sum(1) + 0.1 * torch.randn(n)


class MatrixFactorization(nn.Module):
    def __init__(self, users, items, rank=8):
        super().__init__()
        self.user = nn.Embedding(users, rank)
        self.item = nn.Embedding(items, rank)
        self.user_bias = nn.Embedding(users, 1)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(1) + self.user_bias(u).squeeze(1)


def main():
    torch.manual_seed(44)
    u, i, r = ratings(60, 40, 4000)
    loader = DataLoader(TensorDataset(u, i, r), batch_size=100, shuffle=True)
    model = MatrixFactorization(60, 40)
    epochs = 10
    total_steps = epochs * len(loader)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    scheduler = LambdaLR(optimizer, lambda step: linear_decay(step, total_steps))
    criterion = nn.MSELoss()

    for epoch in range(epochs):
        total = 0.0
        for users, items, stars in loader:
            optimizer.zero_grad()
            loss = criterion(model(users, items), stars)
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item()
        print(f"epoch {epoch + 1:2d}  train_loss {total / len(loader):.4f}")
    with torch.no_grad():
        r2 = 1 - criterion(model(u, i), r) / r.var()
    print(f"fit r2 {r2.item():.3f}")


if __name__ == "__main__":
    main()
