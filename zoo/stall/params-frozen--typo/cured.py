"""Warm up the head for a few epochs, then train the whole network."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Network(nn.Module):
    def __init__(self, inputs, classes):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(inputs, 64),
            nn.ReLU(),
            nn.Linear(64, 32),
            nn.ReLU(),
            nn.Linear(32, 4),
        )
        self.head = nn.Linear(4, classes)

    def forward(self, x):
        return self.head(self.encoder(x))


def set_trainable(module, trainable):
    for p in module.parameters():
        p.requires_grad = trainable


def make_data(n, inputs=48, classes=8):
    g = torch.Generator().manual_seed(31)
    centres = torch.randn(classes, inputs, generator=g)
    y = torch.randint(0, classes, (n,), generator=g)
    return TensorDataset(centres[y] + 1.3 * torch.randn(n, inputs, generator=g), y)


def main():
    torch.manual_seed(2)
    loader = DataLoader(make_data(1600), batch_size=40, shuffle=True)
    model = Network(inputs=48, classes=8)
    for p in model.encoder.parameters():
        p.requires_grad = False
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()

    warmup_epochs, epochs = 2, 9
    for epoch in range(epochs):
        if epoch == warmup_epochs:
            set_trainable(model.encoder, True)
        total, hits = 0.0, 0
        for x, y in loader:
            optimizer.zero_grad()
            out = model(x)
            loss = criterion(out, y)
            loss.backward()
            optimizer.step()
            total += loss.item()
            hits += (out.argmax(1) == y).sum().item()
        print(f"epoch {epoch}: loss {total / len(loader):.4f}, train acc {hits / len(loader.dataset):.3f}")


if __name__ == "__main__":
    main()
