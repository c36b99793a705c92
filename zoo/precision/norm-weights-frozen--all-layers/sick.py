import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Soil(Dataset):
    """Moisture at four depths from the weather of the last days."""

    def __init__(self, n=800):
        g = torch.Generator().manual_seed(77)
        self.weather = torch.randn(n, 24, generator=g)
        mixing = torch.randn(24, 4, generator=g) / 5
        self.moisture = torch.tanh(self.weather @ mixing) + 0.02 * torch.randn(n, 4, generator=g)

    def __len__(self):
        return len(self.weather)

    def __getitem__(self, index):
        return self.weather[index], self.moisture[index]


def build():
    return nn.Sequential(nn.Linear(24, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 4))


def fit(net, loader, epochs, rate):
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    kind = next(net.parameters()).dtype
    for epoch in range(epochs):
        net.train()
        total = 0.0
        for weather, moisture in loader:
            predicted = net(weather.to(kind)).float()
            loss = nn.functional.mse_loss(predicted, moisture)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            total += loss.item()
        print(f"epoch {epoch:2d}  mse {total / len(loader):.5f}")


if __name__ == "__main__":
    torch.manual_seed(77)
    net = build().bfloat16()
    fit(net, DataLoader(Soil(), batch_size=40, shuffle=True), epochs=8, rate=2e-4)
