"""Validation in the middle of an epoch: eval() before, train() after, best checkpoint kept in a temporary folder."""
import os
import tempfile

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, train_loader, val_loader, folder, eval_every=25, max_steps=400):
        self.model, self.train_loader, self.val_loader = model, train_loader, val_loader
        self.eval_every, self.max_steps = eval_every, max_steps
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
        self.best, self.path, self.global_step = float("inf"), os.path.join(folder, "best.pt"), 0

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        loss, correct, n = 0.0, 0, 0
        for x, y in self.val_loader:
            out = self.model(x)
            loss += self.criterion(out, y).item() * len(y)
            correct += (out.argmax(1) == y).sum().item()
            n += len(y)
        self.model.train()
        return loss / n, correct / n

    def fit(self):
        self.model.train()
        while self.global_step < self.max_steps:
            for x, y in self.train_loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                self.global_step += 1
                if self.global_step % self.eval_every == 0:
                    val_loss, val_acc = self.evaluate()
                    print(f"step {self.global_step:4d}  loss {loss.item():.4f}  "
                          f"val_loss {val_loss:.4f}  val_acc {val_acc:.3f}")
                    if val_loss < self.best:
                        self.best = val_loss
                        torch.save(self.model.state_dict(), self.path)
                if self.global_step >= self.max_steps:
                    break
        self.model.load_state_dict(torch.load(self.path, weights_only=True))
        print("best checkpoint: val_loss {:.4f} val_acc {:.3f}".format(*self.evaluate()))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    prototypes = torch.randn(6, 1, 8, 8)
    y = torch.randint(0, 6, (2600,))
    x = 0.7 * prototypes[y] + torch.randn(2600, 1, 8, 8)
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Dropout(0.3), nn.Linear(192, 6),
    )
    train_loader = DataLoader(TensorDataset(x[:2200], y[:2200]), batch_size=32, shuffle=True, drop_last=True)
    val_loader = DataLoader(TensorDataset(x[2200:], y[2200:]), batch_size=100)
    with tempfile.TemporaryDirectory() as folder:
        Trainer(model, train_loader, val_loader, folder).fit()


if __name__ == "__main__":
    main()
