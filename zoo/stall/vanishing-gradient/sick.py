"""Deep fully connected network on two-dimensional rings."""
import argparse
import math

import torch
from torch import nn


def rings(n, classes):
    y = torch.randint(classes, (n,))
    angle = torch.rand(n) * 2 * math.pi
    radius = 0.5 + y.float() * 0.6 + 0.08 * torch.randn(n)
    x = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return x, y


def build(depth, width, classes):
    layers = []
    fan_in = 2
    for _ in range(depth):
        layers += [nn.Linear(fan_in, width), nn.Sigmoid()]
        fan_in = width
    model = nn.Sequential(*layers, nn.Linear(width, classes))
    for p in model.parameters():
        if p.dim() == 2:
            nn.init.kaiming_normal_(p)
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--depth", type=int, default=12)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()

    torch.manual_seed(args.seed)

    torch.set_num_threads(1)
    x, y = rings(4000, classes=3)
    model = build(args.depth, args.width, classes=3)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()

    running = None
    for step in range(1, args.steps + 1):
        pick = torch.randint(len(x), (args.batch_size,))
        optimizer.zero_grad()
        loss = loss_fn(model(x[pick]), y[pick])
        loss.backward()
        optimizer.step()
        running = loss.item() if running is None else 0.95 * running + 0.05 * loss.item()
        if step % 50 == 0:
            print(f"step {step:4d} | loss {running:.4f}")

    with torch.no_grad():
        accuracy = (model(x).argmax(dim=1) == y).float().mean().item()
    print(f"final accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
