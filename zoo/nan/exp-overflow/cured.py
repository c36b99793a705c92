"""Counts of bicycles at a crossing: Poisson regression with a log link."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def load_counts(days=2000, seed=4):
    rng = np.random.default_rng(seed)
    temperature = rng.normal(0, 1, days)
    weekend = rng.integers(0, 2, days)
    rain = rng.lognormal(-1.0, 1.0, days)
    rain[1234] = 2400.0
    rate = np.exp(1.0 + 0.5 * temperature - 0.4 * weekend - 0.2 * np.minimum(rain, 5))
    features = np.stack([temperature, weekend, np.log1p(rain)], axis=1).astype(np.float32)
    return torch.from_numpy(features), torch.from_numpy(rng.poisson(rate).astype(np.float32))


class CountModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(3, 16)
        self.out = nn.Linear(16, 1)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x))).squeeze(-1)


def poisson_nll(log_rate, count):
    rate = torch.exp(log_rate)
    return (rate - count * log_rate).mean()


def main():
    torch.manual_seed(21)
    torch.set_num_threads(1)
    x, y = load_counts()
    loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    model = CountModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(8):
        losses = []
        for features, count in loader:
            optimizer.zero_grad()
            loss = poisson_nll(model(features), count)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1}: nll {np.mean(losses):.4f}")


if __name__ == "__main__":
    main()
