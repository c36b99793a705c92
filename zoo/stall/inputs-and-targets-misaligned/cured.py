"""Classify flower measurements; data are shuffled by hand before each epoch."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def make_flowers(n, species=5, features=10):
    prototypes = 1.5 * torch.randn(species, features)
    y = torch.randint(species, (n,))
    x = prototypes[y] + torch.randn(n, features)
    return x, y


def iterate(x, y, batch_size):
    order = torch.randperm(len(x))
    x = x[order]
    y = y[order]
    for start in range(0, len(x), batch_size):
        yield x[start:start + batch_size], y[start:start + batch_size]


def evaluate(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(dim=1) == y).float().mean().item()


def main():
    torch.manual_seed(7)
    torch.set_num_threads(1)
    x, y = make_flowers(5000)
    x_train, y_train, x_test, y_test = x[:4000], y[:4000], x[4000:], y[4000:]

    model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    for epoch in range(10):
        total = 0.0
        for xb, yb in iterate(x_train, y_train, batch_size=100):
            loss = F.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(xb)
        print(f"epoch {epoch:2d}  loss {total / len(x_train):.4f}  test accuracy {evaluate(model, x_test, y_test):.3f}")


if __name__ == "__main__":
    main()
