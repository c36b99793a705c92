"""House prices in dollars as raw targets: losses around 1e10 that fall, with large but finite gradients."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def houses(n):
    area = torch.rand(n) * 150 + 50
    rooms = torch.randint(1, 7, (n,)).float()
    age = torch.rand(n) * 60
    centre = torch.rand(n) * 20
    price = 2500 * area + 15000 * rooms - 900 * age - 6000 * centre + 40000 * (centre < 3) + 90000
    price = price + 12000 * torch.randn(n)
    return torch.stack([area, rooms, age, centre], 1), price.unsqueeze(1)


class PriceModel(nn.Module):
    def __init__(self, x, y):
        super().__init__()
        self.register_buffer("mean", x.mean(0))
        self.register_buffer("std", x.std(0))
        self.register_buffer("scale", y.std())
        self.net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.net((x - self.mean) / self.std) * self.scale


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    x, y = houses(3000)
    x_test, y_test = houses(500)
    model = PriceModel(x, y)
    mse = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    for epoch in range(1, 13):
        running = 0.0
        for features, price in loader:
            optimizer.zero_grad()
            loss = mse(model(features), price)
            loss.backward()
            optimizer.step()
            running += loss.item() / len(loader)
        with torch.no_grad():
            mae = (model(x_test) - y_test).abs().mean().item()
        print(f"Epoch {epoch:2d}  train MSE loss: {running:,.0f}  test MAE: ${mae:,.0f}")


if __name__ == "__main__":
    main()
