"""Tabular classification with little data: batch norm, strong dropout, early look at the validation accuracy."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, features, classes, width=256, dropout=0.6):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(features, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(dropout),
        )
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.body(x))


class Runner:
    def __init__(self, model, train_loader, val_loader):
        self.model = model
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)

    def evaluate(self):
        self.model.eval()
        hits = n = 0
        with torch.no_grad():
            for x, y in self.val_loader:
                hits += (self.model(x).argmax(-1) == y).sum().item()
                n += len(y)
        return hits / n

    def run(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            running = 0.0
            for x, y in self.train_loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                running += loss.item()
            print(f"[{epoch + 1}/{epochs}] loss: {running / len(self.train_loader):.4f}  val acc: {self.evaluate():.4f}")


def make_split(n, weights, noise):
    x = torch.randn(n, weights.size(0))
    y = (x @ weights).argmax(1)
    flip = torch.rand(n) < noise
    return TensorDataset(x, torch.where(flip, torch.randint(weights.size(1), (n,)), y))


def main():
    torch.manual_seed(13)
    torch.set_num_threads(1)
    weights = torch.randn(20, 4)
    train_loader = DataLoader(make_split(640, weights, noise=0.25), batch_size=32, shuffle=True)
    val_loader = DataLoader(make_split(2000, weights, noise=0.0), batch_size=500)
    Runner(Net(20, 4), train_loader, val_loader).run(epochs=15)


if __name__ == "__main__":
    main()
