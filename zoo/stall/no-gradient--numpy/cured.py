import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Clips(Dataset):
    """Audio-like clips of 20 frames with 12 bands; the kind of sound shapes the bands."""

    def __init__(self, size, seed):
        rng = np.random.default_rng(seed)
        profiles = np.random.default_rng(500).normal(size=(8, 12))
        self.labels = rng.integers(0, 8, size=size)
        loudness = rng.normal(size=(size, 20, 1))
        self.frames = loudness * profiles[self.labels][:, None, :] + 1.2 * rng.normal(size=(size, 20, 12))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.frames[i].astype(np.float32), int(self.labels[i])


class ClipClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4), nn.ReLU())
        self.classifier = nn.Linear(4, 8)

    def forward(self, frames):
        hidden = self.encoder(frames)
        pooled = torch.mean(hidden, dim=1)
        return self.classifier(pooled)


def run_epoch(model, loader, criterion, optimizer=None):
    total, hits = 0.0, 0
    for frames, labels in loader:
        logits = model(frames)
        loss = criterion(logits, labels)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item() * len(labels)
        hits += (logits.argmax(1) == labels).sum().item()
    return total / len(loader.dataset), hits / len(loader.dataset)


def main():
    torch.manual_seed(30)
    train_loader = DataLoader(Clips(1600, 1), batch_size=40, shuffle=True)
    valid_loader = DataLoader(Clips(400, 2), batch_size=200)
    model = ClipClassifier()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for epoch in range(1, 9):
        loss, _ = run_epoch(model, train_loader, criterion, optimizer)
        _, acc = run_epoch(model, valid_loader, criterion)
        print(f"epoch {epoch}: train loss {loss:.4f}, valid acc {acc:.3f}")


if __name__ == "__main__":
    main()
