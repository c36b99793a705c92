"""Image classifier with polynomial learning rate decay."""
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import PolynomialLR
from torch.utils.data import DataLoader, TensorDataset


class SmallNet(nn.Module):
    def __init__(self, classes=6):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
        )
        self.classifier = nn.Linear(16 * 9, classes)

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))


def make_images(n, classes=6, size=12):
    templates = torch.randn(classes, 1, size, size)
    y = torch.randint(classes, (n,))
    return TensorDataset(templates[y] + 1.5 * torch.randn(n, 1, size, size), y)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    epochs = 12
    loader = DataLoader(make_images(1280), batch_size=32, shuffle=True)
    model = SmallNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
    scheduler = PolynomialLR(optimizer, total_iters=epochs * len(loader))
    for epoch in range(epochs):
        total, hits = 0.0, 0
        for images, labels in loader:
            optimizer.zero_grad()
            out = model(images)
            loss = criterion(out, labels)
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item() * len(labels)
            hits += (out.argmax(1) == labels).sum().item()
        n = len(loader.dataset)
        print(f"Epoch {epoch + 1:2d}/{epochs}: loss {total / n:.4f}, acc {hits / n:.3f}")


if __name__ == "__main__":
    main()
