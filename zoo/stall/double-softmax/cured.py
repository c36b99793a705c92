import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self, inputs=40, hidden=64, classes=20):
        super().__init__()
        self.fc1 = nn.Linear(inputs, hidden)
        self.relu = nn.ReLU()
        self.fc2 = nn.Linear(hidden, classes)
        self.softmax = nn.Softmax(dim=1)

    def forward(self, x):
        x = self.relu(self.fc1(x))
        return self.fc2(x)


def leaf_measurements(n, species=20):
    g = torch.Generator().manual_seed(100)
    means = torch.randn(species, 40, generator=g)
    y = torch.randint(0, species, (n,), generator=g)
    return means[y] + torch.randn(n, 40, generator=g), y


def main():
    torch.manual_seed(2)
    x, y = leaf_measurements(2500)
    train_loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=50, shuffle=True)
    model = Classifier()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    for epoch in range(5):
        running_loss = 0.0
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = criterion(outputs, labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        with torch.no_grad():
            accuracy = (model(x[2000:]).argmax(1) == y[2000:]).float().mean().item()
        print(f"Epoch {epoch + 1}, Loss: {running_loss / len(train_loader):.4f}, Accuracy: {accuracy:.3f}")


if __name__ == "__main__":
    main()
