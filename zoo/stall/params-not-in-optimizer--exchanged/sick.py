"""Predicts which of seven routes a cyclist takes from the weather, the time and the last trips."""
import math

import torch
from torch import nn

FEATURES, ROUTES, WIDTH, EPOCHS, BATCH = 20, 7, 64, 8, 50


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 2 * width)
        self.shrink = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.shrink(torch.nn.functional.gelu(self.expand(self.norm(x))))


class RouteModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(FEATURES, WIDTH)
        self.blocks = nn.ModuleList(Block(WIDTH) for _ in range(3))
        self.leave = nn.Linear(WIDTH, ROUTES)

    def orthogonal_start(self):
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                layer.weight = nn.Parameter(nn.init.orthogonal_(torch.empty(layer.out_features, layer.in_features)))
                layer.bias = nn.Parameter(torch.zeros(layer.out_features))

    def forward(self, x):
        x = self.enter(x)
        for block in self.blocks:
            x = block(x)
        return self.leave(x)


def trips(count, preferences, generator):
    x = torch.randn(count, FEATURES, generator=generator)
    return x, (torch.relu(x @ preferences[0]) @ preferences[1]).argmax(1)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(12)
    generator = torch.Generator().manual_seed(13)
    preferences = torch.randn(FEATURES, 12, generator=generator), torch.randn(12, ROUTES, generator=generator)
    x, y = trips(4000, preferences, generator)
    x_new, y_new = trips(1000, preferences, generator)

    model = RouteModel()
    steps = EPOCHS * math.ceil(len(x) / BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    model.orthogonal_start()

    for epoch in range(EPOCHS):
        total = 0.0
        for rows in torch.randperm(len(x), generator=generator).split(BATCH):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item() * len(rows)
        with torch.no_grad():
            accuracy = (model(x_new).argmax(1) == y_new).float().mean().item()
        print(f"epoch {epoch}: loss {total / len(x):.4f}, accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
