import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(24, 64)
        self.fc2 = nn.Linear(64, 64)
        self.fc3 = nn.Linear(64, 5)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


def wine_like(n):
    centres = torch.randn(5, 24)
    y = torch.randint(0, 5, (n,))
    return centres[y] + 1.2 * torch.randn(n, 24), y


def main():
    torch.manual_seed(0)
    x, y = wine_like(1400)
    train_loader = DataLoader(TensorDataset(x[:1000], y[:1000]), batch_size=50, shuffle=True)
    model = MLP()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for epoch in range(1, 11):
        model.train()
        total = 0.0
        for xb, yb in train_loader:
            out = model(xb)
            loss = criterion(out, yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            acc = (model(x[1000:]).argmax(1) == y[1000:]).float().mean().item()
        print(f"Epoch {epoch:02d}: loss = {total / len(train_loader):.4f}, acc = {acc:.3f}")


if __name__ == "__main__":
    main()
