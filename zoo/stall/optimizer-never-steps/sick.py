import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ChurnNet(nn.Module):
    def __init__(self, n_features, n_classes):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(n_features, 64),
            nn.ReLU(),
            nn.Linear(64, 32),
            nn.ReLU(),
            nn.Linear(32, n_classes),
        )

    def forward(self, x):
        return self.layers(x)


def make_table(n, n_features=20, n_classes=4):
    x = torch.randn(n, n_features)
    rule = torch.randn(n_features, n_classes)
    y = (x @ rule + 0.5 * torch.randn(n, n_classes)).argmax(1)
    return x, y


def train_epoch(model, loader, criterion, optimizer):
    model.train()
    running, correct, seen = 0.0, 0, 0
    for x, y in loader:
        optimizer.zero_grad()
        out = model(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step
        running += loss.item() * len(y)
        correct += (out.argmax(1) == y).sum().item()
        seen += len(y)
    return running / seen, correct / seen


def main():
    torch.manual_seed(42)
    x, y = make_table(2000)
    loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    model = ChurnNet(20, 4)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    for epoch in range(1, 9):
        loss, acc = train_epoch(model, loader, criterion, optimizer)
        print(f"Epoch {epoch}/8  loss: {loss:.4f}  acc: {acc:.3f}")


if __name__ == "__main__":
    main()
