"""Train a classifier with a Trainer class that writes its history to a CSV file."""
import csv
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    fields = ["epoch", "train_loss", "val_loss", "val_acc"]

    def __init__(self, model, train_loader, val_loader, history_path):
        self.model = model
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        self.history_path = history_path
        self.predictions = None

    @torch.no_grad()
    def predict(self):
        self.model.eval()
        self.predictions = torch.cat([self.model(x).argmax(1) for x, _ in self.val_loader])
        return self.predictions

    def train_epoch(self):
        self.model.train()
        losses = []
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        labels = torch.cat([y for _, y in self.val_loader])
        loss = sum(self.criterion(self.model(x), y).item() for x, y in self.val_loader) / len(self.val_loader)
        preds = self.predict()
        return loss, (preds == labels).float().mean().item()

    def fit(self, epochs):
        with open(self.history_path, "w", newline="") as f:
            writer = csv.DictWriter(f, self.fields)
            writer.writeheader()
            val_loss, val_acc = self.validate()
            for epoch in range(epochs):
                train_loss = self.train_epoch()
                val_loss, val_acc = self.validate()
                row = dict(zip(self.fields, [epoch, train_loss, val_loss, val_acc]))
                writer.writerow(row)
                f.flush()
                print(f"epoch {epoch}: train_loss {train_loss:.4f} val_loss {val_loss:.4f} val_acc {val_acc:.4f}")


def main():
    torch.manual_seed(8)
    torch.set_num_threads(1)
    centers = torch.randn(8, 20)
    y = torch.randint(8, (4000,))
    x = centers[y] + 0.8 * torch.randn(4000, 20)
    train_loader = DataLoader(TensorDataset(x[:3200], y[:3200]), batch_size=64, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[3200:], y[3200:]), batch_size=200)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 8))
    history = os.path.join(tempfile.mkdtemp(prefix="history-"), "history.csv")
    Trainer(model, train_loader, val_loader, history).fit(epochs=8)


if __name__ == "__main__":
    main()
