"""Recognises the state of a pump from 60 numbers that its sensors report within a minute."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SENSORS, STATES, EPOCHS = 60, 6, 10


class Standardise:
    def __init__(self, mean, std):
        self.mean, self.std = torch.from_numpy(mean), torch.from_numpy(std)

    def __call__(self, x):
        x -= self.mean
        x /= self.std
        return x


class Readings(Dataset):
    def __init__(self, x, y, transform):
        self.x, self.y, self.transform = x, y, transform

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        x = torch.from_numpy(self.x[i].copy())
        return self.transform(x), int(self.y[i])


def pumps(count, usual, typical, spread, rng):
    states = rng.integers(0, STATES, count)
    x = usual + spread * (typical[states] + 1.5 * rng.standard_normal((count, SENSORS)))
    return x.astype(np.float32), states


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(SENSORS, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, STATES))

    def forward(self, x):
        return self.layers(x)


def evaluate(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()
    model.train()
    return right / len(loader.dataset)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(2)
    rng = np.random.default_rng(3)
    usual = rng.uniform(20, 80, SENSORS)
    spread = rng.uniform(2, 12, SENSORS)
    typical = rng.standard_normal((STATES, SENSORS))
    x, y = pumps(3000, usual, typical, spread, rng)
    x_test, y_test = pumps(1000, usual, typical, spread, rng)
    standardise = Standardise(x.mean(0), x.std(0))
    train_loader = DataLoader(Readings(x, y, standardise), batch_size=50, shuffle=True)
    test_loader = DataLoader(Readings(x_test, y_test, standardise), batch_size=200)
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        total = 0.0
        for batch, states in train_loader:
            loss = nn.functional.cross_entropy(model(batch), states)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(train_loader):.4f}, test accuracy {evaluate(model, test_loader):.3f}")


if __name__ == "__main__":
    main()
