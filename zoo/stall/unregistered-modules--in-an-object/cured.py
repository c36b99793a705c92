"""Forecasts tomorrow's consumption of a household from the last three weeks and the kind of day."""
import torch
from torch import nn

DAYS, KINDS_OF_DAY, WIDTH = 21, 4, 40


class History:
    """How the last weeks become a vector: once as a whole, once as differences from day to day."""

    def __init__(self, days, width):
        self.days = days
        self.level = nn.Sequential(nn.Linear(days, width), nn.ReLU(), nn.Linear(width, 2))
        self.change = nn.Sequential(nn.Linear(days - 1, width), nn.ReLU(), nn.Linear(width, 2))

    def summarise(self, consumption):
        return torch.cat([self.level(consumption), self.change(consumption.diff(dim=1))], dim=1)


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.history = History(DAYS, WIDTH)
        self.summaries = nn.ModuleList([self.history.level, self.history.change])
        self.kind = nn.Embedding(KINDS_OF_DAY, 4)
        self.norm = nn.LayerNorm(8)
        self.mix = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, consumption, kind):
        joined = torch.cat([self.history.summarise(consumption), self.kind(kind)], dim=1)
        return self.mix(self.norm(joined)).squeeze(1)


def households(count, rhythm, generator):
    consumption = torch.randn(count, DAYS, generator=generator)
    kind = torch.randint(0, KINDS_OF_DAY, (count,), generator=generator)
    usual = torch.tanh(consumption @ rhythm)
    jump = (consumption[:, -1] - consumption[:, -8]).abs()
    tomorrow = 2 * usual + 0.5 * jump + 0.4 * kind
    return consumption, kind, tomorrow + 0.1 * torch.randn(count, generator=generator)


def explained(model, consumption, kind, tomorrow):
    model.eval()
    with torch.no_grad():
        left = nn.functional.mse_loss(model(consumption, kind), tomorrow)
    model.train()
    return 1 - (left / tomorrow.var()).item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(21)
    generator = torch.Generator().manual_seed(22)
    rhythm = torch.randn(DAYS, generator=generator) / 3
    consumption, kind, tomorrow = households(4000, rhythm, generator)
    held_out = households(1000, rhythm, generator)
    model = Forecast()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(12):
        total = 0.0
        for rows in torch.randperm(len(kind), generator=generator).split(64):
            loss = nn.functional.mse_loss(model(consumption[rows], kind[rows]), tomorrow[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        print(f"epoch {epoch:2d}: loss {total / len(kind):.4f}, variance explained {explained(model, *held_out):.3f}")


if __name__ == "__main__":
    main()
