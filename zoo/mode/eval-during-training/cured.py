"""Convolutional classifier with batch norm and dropout; a validation pass before and after each epoch."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Textures(Dataset):
    def __init__(self, n, size=12):
        r = torch.arange(size).float()
        yy, xx = torch.meshgrid(r, r, indexing="ij")
        self.labels = torch.randint(6, (n,))
        angle = self.labels.view(-1, 1, 1) * (torch.pi / 6)
        phase = 6.28 * torch.rand(n, 1, 1)
        self.images = 0.2 + 0.12 * torch.sin(xx * angle.cos() + yy * angle.sin() + phase)
        self.images += 0.1 * torch.randn(n, size, size)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i].unsqueeze(0), self.labels[i]


class TextureNet(nn.Module):
    def __init__(self, classes=6):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(12)
        self.conv2 = nn.Conv2d(12, 24, 3, stride=2, padding=1)
        self.bn2 = nn.BatchNorm2d(24)
        self.conv3 = nn.Conv2d(24, 24, 3, stride=2, padding=1)
        self.bn3 = nn.BatchNorm2d(24)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(24 * 9, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        x = F.relu(self.bn3(self.conv3(x)))
        return self.fc(self.drop(x.flatten(1)))


def validate(model, loader):
    model.eval()
    correct, loss = 0, 0.0
    with torch.no_grad():
        for images, labels in loader:
            logits = model(images)
            loss += F.cross_entropy(logits, labels, reduction="sum").item()
            correct += (logits.argmax(1) == labels).sum().item()
    return loss / len(loader.dataset), correct / len(loader.dataset)


def train_one_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    return total / len(loader.dataset)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train_loader = DataLoader(Textures(1024), batch_size=64, shuffle=True)
    val_loader = DataLoader(Textures(256), batch_size=128)
    model = TextureNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    val_loss, val_acc = validate(model, val_loader)
    print(f"before training: val_loss {val_loss:.4f} val_acc {val_acc:.3f}")
    for epoch in range(6):
        loss = train_one_epoch(model, train_loader, optimizer)
        val_loss, val_acc = validate(model, val_loader)
        print(f"epoch {epoch + 1}: val_loss {val_loss:.4f} val_acc {val_acc:.3f} train_loss {loss:.4f}")


if __name__ == "__main__":
    main()
