"""Linear probe: a pretrained, frozen backbone loaded from a checkpoint, only the new head is trained."""
import os
import tempfile

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )

    def forward(self, x):
        return self.features(x)


class Classifier(nn.Module):
    def __init__(self, backbone, n_classes):
        super().__init__()
        self.backbone = backbone
        self.fc = nn.Linear(64, n_classes)

    def forward(self, x):
        return self.fc(self.backbone(x))


def stripes(n, n_angles, seed):
    """Images of stripes; the class is their direction."""
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, n_angles, (n,), generator=g)
    angle = y.float() * torch.pi / n_angles
    grid = torch.arange(12).float()
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    phase = torch.rand(n, 1, 1, generator=g) * 6.28
    wave = torch.cos(angle)[:, None, None] * xx + torch.sin(angle)[:, None, None] * yy
    x = torch.sin(wave * 1.6 + phase) + 1.0 * torch.randn(n, 12, 12, generator=g)
    return TensorDataset(x.unsqueeze(1), y)


def pretrain(path):
    model = Classifier(Backbone(), 6)
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(3):
        for x, y in DataLoader(stripes(1500, 6, seed=1), batch_size=50, shuffle=True):
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
        print(f"pretraining epoch {epoch}: loss {loss.item():.4f}")
    torch.save(model.backbone.state_dict(), path)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = os.path.join(folder, "backbone.pt")
        pretrain(checkpoint)

        backbone = Backbone()
        backbone.load_state_dict(torch.load(checkpoint, weights_only=True))

    for p in backbone.parameters():
        p.requires_grad = False
    backbone.eval()

    model = Classifier(backbone, 3)
    optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    train_loader = DataLoader(stripes(1500, 3, seed=2), batch_size=50, shuffle=True)
    val_loader = DataLoader(stripes(300, 3, seed=3), batch_size=100)

    for epoch in range(8):
        running = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
        with torch.no_grad():
            correct = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
        print(f"probe epoch {epoch}: loss {running / len(train_loader):.4f}  val acc {correct / 300:.3f}")


if __name__ == "__main__":
    main()
