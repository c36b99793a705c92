"""Ridge-like regression of soil moisture."""
import torch
import torch.nn as nn


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(400, 6)
    y = (x[:, :1] - 0.5 * x[:, 1:2] * x[:, 2:3]) + 0.1 * torch.randn(400, 1)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    mse = nn.MSELoss()
    for epoch in range(12):
        for rows in torch.randperm(400).split(20):
            penalty = 1e-3 * sum((p ** 2).sum() for p in model.parameters())
            loss = mse(model(x[rows]), y[rows]) + penalty
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


main()
