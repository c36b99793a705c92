"""Signal classifier; the model comes from a factory that can also load weights for inference."""
import argparse

import torch
import torch.nn as nn


def conv_block(cin, cout):
    return nn.Sequential(nn.Conv1d(cin, cout, 5, stride=2, padding=2), nn.BatchNorm1d(cout), nn.ReLU())


def build_model(channels, classes, weights=None):
    model = nn.Sequential(
        conv_block(channels, 16),
        conv_block(16, 32),
        conv_block(32, 32),
        conv_block(32, 32),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(32, classes),
    )
    if weights is not None:
        model.load_state_dict(torch.load(weights))
    return model.eval()


def make_signals(n, classes, length=48):
    t = torch.arange(length).float()
    y = torch.randint(classes, (n,))
    freq = 0.25 + 0.22 * y.float().view(-1, 1, 1)
    phase = 6.28 * torch.rand(n, 2, 1)
    x = 0.05 * torch.sin(freq * t + phase) + 0.02 * torch.randn(n, 2, length)
    return x, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--weights", default=None)
    args = parser.parse_args()

    torch.manual_seed(0)

    torch.set_num_threads(1)
    x, y = make_signals(1280, classes=5)
    model = build_model(channels=2, classes=5, weights=args.weights)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(args.epochs):
        order = torch.randperm(len(x))
        total, hits = 0.0, 0
        for batch in order.split(args.batch_size):
            out = model(x[batch])
            loss = criterion(out, y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(batch)
            hits += (out.argmax(1) == y[batch]).sum().item()
        print(f"epoch {epoch:02d} loss {total / len(x):.4f} acc {hits / len(x):.3f}")


if __name__ == "__main__":
    main()
