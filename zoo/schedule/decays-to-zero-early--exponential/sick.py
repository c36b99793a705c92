"""Predict a device's state from a window of readings with an LSTM and exponential decay."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class StateModel(nn.Module):
    def __init__(self, channels=3, hidden=24, states=4):
        super().__init__()
        self.lstm = nn.LSTM(channels, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, states)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1])


def windows(n, length=12):
    state = torch.randint(4, (n,))
    slope = torch.tensor([[1.0, 0.0, -1.0], [-1.0, 1.0, 0.0], [0.0, -1.0, 1.0], [0.5, 0.5, 0.5]])
    t = torch.linspace(-1, 1, length).view(1, -1, 1)
    return TensorDataset(slope[state].unsqueeze(1) * t + 0.3 * torch.randn(n, length, 3), state)


def train_epoch(model, loader, optimizer, scheduler, criterion):
    model.train()
    loss_sum, correct = 0.0, 0
    for x, state in loader:
        out = model(x)
        loss = criterion(out, state)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        loss_sum += loss.item()
        correct += (out.argmax(1) == state).sum().item()
    return loss_sum / len(loader), correct / len(loader.dataset)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(windows(1600), batch_size=32, shuffle=True)
    model = StateModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(6):
        loss, acc = train_epoch(model, loader, optimizer, scheduler, criterion)
        print(f"epoch {epoch}: loss={loss:.4f}, accuracy={acc:.3f}")


if __name__ == "__main__":
    main()
