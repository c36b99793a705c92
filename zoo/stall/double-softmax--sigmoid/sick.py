"""Detect short events in a noisy signal."""

import torch
import torch.nn as nn


def build(length):
    return nn.Sequential(
        nn.Conv1d(1, 12, kernel_size=7, padding=3),
        nn.ReLU(),
        nn.AdaptiveMaxPool1d(4),
        nn.Flatten(),
        nn.Linear(48, 24),
        nn.ReLU(),
        nn.Linear(24, 1),
        nn.Sigmoid(),
    )


def recordings(n, length=64):
    signal = torch.randn(n, 1, length)
    target = (torch.rand(n, 1) < 0.4).float()
    start = torch.randint(0, length - 8, (n,))
    bump = torch.hann_window(8) * 4.0
    for k in range(n):
        signal[k, 0, start[k] : start[k] + 8] += bump * target[k]
    return signal, target


def main():
    torch.manual_seed(16)
    x, y = recordings(1200)
    x_test, y_test = recordings(400)
    model = build(64)
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(1, 9):
        total = 0.0
        for index in torch.randperm(len(x)).split(40):
            signal, target = x[index], y[index]
            optimizer.zero_grad()
            loss = criterion(model(signal), target)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(index)
        with torch.no_grad():
            predicted = torch.sigmoid(model(x_test)) > 0.5
            acc = (predicted == y_test.bool()).float().mean().item()
        print(f"epoch {epoch} loss {total / len(x):.4f} test acc {acc:.3f}")


if __name__ == "__main__":
    main()
