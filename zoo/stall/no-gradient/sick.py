"""Train an image classifier from scratch."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class ImageClassifier(nn.Module):
    def __init__(self, num_classes, dim=5):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 12, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(16 * 9, dim),
        )
        self.head = nn.Linear(dim, num_classes)

    def forward(self, images):
        features = self.encoder(images).detach()
        return self.head(features)


def make_split(templates, n):
    labels = torch.randint(0, len(templates), (n,))
    return TensorDataset(templates[labels] + 1.5 * torch.randn(n, 3, 12, 12), labels)


def accuracy(model, loader):
    model.eval()
    hits = 0
    with torch.no_grad():
        for images, labels in loader:
            hits += (model(images).argmax(1) == labels).sum().item()
    return hits / len(loader.dataset)


def main():
    torch.manual_seed(0)
    templates = torch.randn(10, 3, 12, 12)
    train_loader = DataLoader(make_split(templates, 1280), batch_size=32, shuffle=True)
    test_loader = DataLoader(make_split(templates, 400), batch_size=200)

    model = ImageClassifier(num_classes=10)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    for epoch in range(5):
        model.train()
        running_loss = 0.0
        for images, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            running_loss += loss.item()
        print(f"epoch {epoch} loss {running_loss / len(train_loader):.4f} accuracy {accuracy(model, test_loader):.3f}")


if __name__ == "__main__":
    main()
