"""Attention pooling over the readings of a machine, in mixed precision."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class AttentionPool(nn.Module):
    def __init__(self, features=16, dim=32, classes=5):
        super().__init__()
        self.project = nn.Linear(features, dim)
        self.score = nn.Linear(dim, 1)
        self.classify = nn.Linear(dim, classes)

    def forward(self, readings, quality):
        h = torch.relu(self.project(readings))
        score = self.score(h).squeeze(-1) + quality.to(h.dtype)
        weight = torch.exp(score).clamp(max=100.0)
        weight = weight / weight.sum(dim=1, keepdim=True)
        return self.classify((weight.unsqueeze(-1) * h).sum(dim=1))


def machine_logs(n, steps=10, features=16, classes=5):
    """The quality column is the log of the sample count behind each reading."""
    g = torch.Generator().manual_seed(70)
    centres = torch.randn(classes, features, generator=g)
    labels = torch.randint(0, classes, (n,), generator=g)
    readings = centres[labels].unsqueeze(1) + torch.randn(n, steps, features, generator=g)
    quality = torch.rand(n, steps, generator=g) * 13.0
    return TensorDataset(readings, quality, labels)


def main():
    torch.manual_seed(8)
    loader = DataLoader(machine_logs(1600), batch_size=64, shuffle=True)
    model = AttentionPool()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    scaler = torch.amp.GradScaler("cpu")

    for epoch in range(5):
        total, hits = 0.0, 0
        for readings, quality, labels in loader:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                logits = model(readings, quality)
                loss = F.cross_entropy(logits, labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            total += loss.item()
            hits += (logits.argmax(1) == labels).sum().item()
        print(f"epoch {epoch} loss {total / len(loader):.4f} acc {hits / len(loader.dataset):.3f}")


if __name__ == "__main__":
    main()
