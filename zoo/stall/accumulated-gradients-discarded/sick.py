import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.fc = nn.Linear(16 * 4, 10)

    def forward(self, x):
        return self.fc(self.features(x).flatten(1))


def digits(n, seed):
    prototypes = torch.randn(10, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 10, (n,), generator=g)
    return TensorDataset(prototypes[y] + 0.5 * torch.randn(n, 1, 8, 8, generator=g), y)


def main():
    torch.manual_seed(18)
    accumulation_steps = 8
    train_loader = DataLoader(digits(1280, 1), batch_size=4, shuffle=True)
    test_loader = DataLoader(digits(400, 2), batch_size=200)
    model = Net()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    for epoch in range(3):
        running_loss = 0.0
        model.train()
        for i, (images, labels) in enumerate(train_loader):
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            (loss / accumulation_steps).backward()
            if (i + 1) % accumulation_steps == 0:
                optimizer.step()
            running_loss += loss.item()
        model.eval()
        with torch.no_grad():
            hits = sum((model(x).argmax(1) == y).sum().item() for x, y in test_loader)
        print(f"epoch {epoch + 1} loss {running_loss / len(train_loader):.4f} acc {hits / 400:.4f}")


if __name__ == "__main__":
    main()
