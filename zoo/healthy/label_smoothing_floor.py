"""Label smoothing 0.1 with 10 classes: the loss converges to its floor of about 0.50 and can never reach zero."""
import math

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

NUM_CLASSES = 10
SMOOTHING = 0.1


def floor(c, s):
    """The smallest loss that any prediction can have: the entropy of the smoothed label."""
    hot, cold = 1 - s + s / c, s / c
    return -(hot * math.log(hot) + (c - 1) * cold * math.log(cold))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(17)
    prototypes = torch.randn(NUM_CLASSES, 25)
    labels = torch.randint(0, NUM_CLASSES, (3000,))
    inputs = prototypes[labels] + 0.4 * torch.randn(3000, 25)
    trainloader = DataLoader(TensorDataset(inputs[:2500], labels[:2500]), batch_size=64, shuffle=True)
    testloader = DataLoader(TensorDataset(inputs[2500:], labels[2500:]), batch_size=250)

    model = nn.Sequential(nn.Linear(25, 80), nn.ReLU(), nn.Linear(80, NUM_CLASSES))
    criterion = nn.CrossEntropyLoss(label_smoothing=SMOOTHING)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

    for epoch in range(18):
        model.train()
        running_loss = 0.0
        for x, y in trainloader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running_loss += loss.item() * x.size(0)
        model.eval()
        with torch.no_grad():
            acc = sum((model(x).argmax(1) == y).sum().item() for x, y in testloader) / 500
        print(f"Epoch {epoch + 1}/18 - loss: {running_loss / 2500:.4f} - acc: {acc:.4f}")
    print(f"floor of the smoothed loss: {floor(NUM_CLASSES, SMOOTHING):.4f}")


if __name__ == "__main__":
    main()
