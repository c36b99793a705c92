"""Train an MLP on sensor readings, ten fault classes."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self, features, classes, width=128):
        super().__init__()
        self.fc1 = nn.Linear(features, width)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, width)
        self.out = nn.Linear(width, classes)
        self.relu = nn.ReLU()

    def forward(self, x):
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        x = self.relu(self.fc3(x))
        return self.out(x)


def make_data(samples=4096, features=32, classes=10):
    centers = torch.randn(classes, features) * 0.9
    labels = torch.randint(classes, (samples,))
    readings = centers[labels] + torch.randn(samples, features)
    return TensorDataset(readings, labels)


def train(model, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.7)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        total, correct = 0.0, 0
        for readings, labels in loader:
            optimizer.zero_grad()
            logits = model(readings)
            loss = criterion(logits, labels)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
            correct += (logits.argmax(1) == labels).sum().item()
        scheduler.step()
        n = len(loader.dataset)
        print(f"epoch {epoch + 1:2d}  loss {total / n:.4f}  acc {correct / n:.4f}")


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(make_data(), batch_size=128, shuffle=True)
    model = Classifier(features=32, classes=10)
    train(model, loader, epochs=12)


if __name__ == "__main__":
    main()
