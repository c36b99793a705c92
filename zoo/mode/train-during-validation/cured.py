"""Fine-grained digit-like classification with a validation pass per epoch."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 128)
        self.bn1 = nn.BatchNorm1d(128)
        self.fc2 = nn.Linear(128, 128)
        self.bn2 = nn.BatchNorm1d(128)
        self.fc3 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.fc1(x)))
        x = F.dropout(x, 0.5, self.training)
        x = F.relu(self.bn2(self.fc2(x)))
        x = F.dropout(x, 0.5, self.training)
        return F.log_softmax(self.fc3(x), dim=1)


def train(model, loader, optimizer, epoch):
    model.train()
    total = 0.0
    for data, target in loader:
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"Train Epoch: {epoch}\tLoss: {total / len(loader):.6f}")


def validate(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in loader:
            scores = model(data)
            correct += scores.argmax(dim=1).eq(target).sum().item()
    print(f"Validation set: Accuracy: {correct / len(loader.dataset):.4f}")


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    centers = 0.45 * torch.randn(10, 64)
    labels = torch.arange(10).repeat(300)
    data = centers[labels] + torch.randn(3000, 64)
    order = torch.randperm(2400)
    train_set = TensorDataset(data[:2400][order], labels[:2400][order])
    val_order = labels[2400:].argsort(stable=True)
    val_set = TensorDataset(data[2400:][val_order], labels[2400:][val_order])
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=16)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, 9):
        train(model, train_loader, optimizer, epoch)
        validate(model, val_loader)


if __name__ == "__main__":
    main()
