import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class DeepClassifier(nn.Module):
    def __init__(self, inputs, sizes, classes):
        super().__init__()
        sizes = [inputs, *sizes]
        self.hidden = nn.ModuleList([nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])])
        self.output = nn.Linear(sizes[-1], classes)

    def forward(self, x):
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.output(x)


def gestures(n, inputs=60, classes=8):
    centres = torch.randn(classes, inputs)
    y = torch.randint(0, classes, (n,))
    return TensorDataset(centres[y] + 1.5 * torch.randn(n, inputs), y)


def main():
    torch.manual_seed(11)
    train, test = torch.utils.data.random_split(gestures(2000), [1600, 400])
    train_loader = DataLoader(train, batch_size=32, shuffle=True)
    test_loader = DataLoader(test, batch_size=200)
    model = DeepClassifier(60, [64, 32, 8], 8)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    for epoch in range(6):
        total = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        with torch.no_grad():
            right = sum((model(x).argmax(1) == y).sum().item() for x, y in test_loader)
        print(f"epoch {epoch}: train loss {total / len(train_loader):.4f}, test accuracy {right / len(test):.3f}")


if __name__ == "__main__":
    main()
