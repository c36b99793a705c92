import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class LeNetish(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.conv2 = nn.Conv2d(8, 16, 3)
        self.fc = nn.Linear(16 * 4, classes)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 4)
        x = x.flatten(1)
        return F.log_softmax(self.fc(x), dim=1)


def digits(n, seed):
    shapes = torch.rand(10, 1, 12, 12, generator=torch.Generator().manual_seed(1))
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 10, (n,), generator=g)
    return TensorDataset(shapes[y] + 0.3 * torch.rand(n, 1, 12, 12, generator=g), y)


def train(model, loader, optimizer, epoch):
    model.train()
    for step, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        log_probs = model(data)
        loss = F.nll_loss(log_probs, target)
        loss.backward()
        optimizer.step()
        if step % 15 == 0:
            print(f"Train Epoch: {epoch} [{step}/{len(loader)}]\tLoss: {loss.item():.6f}")


def test(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in loader:
            correct += (model(data).argmax(dim=1) == target).sum().item()
    print(f"Test set: Accuracy: {correct / len(loader.dataset):.4f}")


def main():
    torch.manual_seed(1)
    train_loader = DataLoader(digits(1600, 1), batch_size=32, shuffle=True)
    test_loader = DataLoader(digits(300, 2), batch_size=1)
    model = LeNetish()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(1, 4):
        train(model, train_loader, optimizer, epoch)
        test(model, test_loader)


if __name__ == "__main__":
    main()
