"""Fine-tune a small convolutional network on a new set of twelve classes."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class SmallConvNet(nn.Module):
    def __init__(self, num_classes=100):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.bn2 = nn.BatchNorm2d(32)
        self.fc = nn.Linear(32 * 9, num_classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(x.flatten(1))


def glyphs(n, num_classes, seed):
    shapes = torch.randn(num_classes, 1, 12, 12, generator=torch.Generator().manual_seed(99))
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, num_classes, (n,), generator=g)
    return TensorDataset(shapes[y] + torch.randn(n, 1, 12, 12, generator=g), y)


def adapt_head(model, num_classes):
    model.fc = nn.Linear(model.fc.in_features, num_classes)
    nn.init.normal_(model.fc.weight, std=0.001)
    nn.init.zeros_(model.fc.bias)


def evaluate(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(dim=1) == y).sum().item()
    model.train()
    return correct / len(loader.dataset)


def main():
    torch.manual_seed(0)
    num_classes = 12
    train_loader = DataLoader(glyphs(960, num_classes, 1), batch_size=32, shuffle=True)
    test_loader = DataLoader(glyphs(240, num_classes, 2), batch_size=120)

    model = SmallConvNet()
    adapt_head(model, num_classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()

    step = 0
    for epoch in range(4):
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            if step % 10 == 0:
                print(f"step {step:4d}  loss {loss.item():.4f}")
            step += 1
        print(f"epoch {epoch}  loss {loss.item():.4f}  accuracy {evaluate(model, test_loader):.3f}")


if __name__ == "__main__":
    main()
