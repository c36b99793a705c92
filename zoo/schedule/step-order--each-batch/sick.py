"""Estimate a sensor's calibration online with a decreasing step size: one pass over the stream, in small batches."""
import torch
from torch import nn


def stream(batches, size, weights, offset):
    for _ in range(batches):
        x = torch.randn(size, len(weights))
        yield x, x @ weights + offset + 0.1 * torch.randn(size)


def gain(step):
    return 1.0 if step == 0 else 0.02 / step


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    weights = 3 * torch.randn(6)
    model = nn.Linear(6, 1)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, gain)
    for i, (x, y) in enumerate(stream(300, 256, weights, offset=1.5)):
        loss = criterion(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        scheduler.step()
        optimizer.step()
        if i % 30 == 29:
            print(f"batch {i + 1:3d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
