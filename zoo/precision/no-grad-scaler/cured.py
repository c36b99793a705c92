"""Finds four joints of a stick figure: one heatmap per joint, in mixed precision."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

SIZE, JOINTS = 24, 4


class HeatmapNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 16, 5, padding=2)
        self.body = nn.Conv2d(16, 16, 5, padding=2)
        self.head = nn.Conv2d(16, JOINTS, 1)

    def forward(self, image):
        h = F.relu(self.stem(image))
        h = F.relu(self.body(h))
        return self.head(h)


def figures(n):
    """Each joint is a blob of its own brightness; the target is a small bump at its place."""
    g = torch.Generator().manual_seed(3)
    places = torch.randint(4, SIZE - 4, (n, JOINTS, 2), generator=g).float()
    grid = torch.arange(SIZE).float()
    dy = (grid[None, None, :, None] - places[:, :, 0, None, None]) ** 2
    dx = (grid[None, None, None, :] - places[:, :, 1, None, None]) ** 2
    maps = torch.exp(-(dx + dy) / 4)
    brightness = torch.tensor([1.0, -1.0, 2.0, -2.0])[None, :, None, None]
    image = (maps * brightness).sum(1, keepdim=True) + 0.05 * torch.randn(n, 1, SIZE, SIZE, generator=g)
    return TensorDataset(image, 0.01 * maps)


def main():
    torch.manual_seed(0)
    loader = DataLoader(figures(384), batch_size=32, shuffle=True)
    model = HeatmapNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-5)
    scaler = torch.amp.GradScaler("cpu")

    for epoch in range(5):
        total = 0.0
        for image, target in loader:
            with torch.autocast("cpu", dtype=torch.float16):
                loss = F.mse_loss(model(image), target)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.3e}")


if __name__ == "__main__":
    main()
