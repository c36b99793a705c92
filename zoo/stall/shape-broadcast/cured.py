"""House price regression on tabular features."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def load_houses(n=3000, features=12):
    x = torch.randn(n, features)
    w = torch.randn(features)
    price = x @ w + 0.5 * x[:, 0] * x[:, 1] + 0.1 * torch.randn(n)
    price = (price - price.mean()) / price.std()
    return TensorDataset(x, price)


class PriceNet(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(features, 64),
            nn.ReLU(),
            nn.Linear(64, 64),
            nn.ReLU(),
            nn.Linear(64, 1),
        )

    def forward(self, x):
        return self.layers(x)


def main():
    torch.manual_seed(42)
    torch.set_num_threads(1)
    dataset = load_houses()
    train_set, test_set = random_split(dataset, [2400, 600])
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=600)

    model = PriceNet(12)
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(8):
        model.train()
        epoch_loss = 0.0
        for x, price in train_loader:
            optimizer.zero_grad()
            pred = model(x).squeeze(1)
            loss = criterion(pred, price)
            loss.backward()
            optimizer.step()
            epoch_loss += loss.item()
        print(f"Epoch {epoch + 1}: loss = {epoch_loss / len(train_loader):.4f}")

    model.eval()
    with torch.no_grad():
        for x, price in test_loader:
            error = (model(x).flatten() - price.flatten()).pow(2).mean()
            print(f"test R2: {1 - (error / price.var()).item():.3f}")


if __name__ == "__main__":
    main()
