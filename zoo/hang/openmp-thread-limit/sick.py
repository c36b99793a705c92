"""Segment synthetic satellite tiles with a small encoder-decoder on a shared CPU node."""

import os

os.environ["OMP_THREAD_LIMIT"] = "2"

import torch
import torch.nn as nn
import torch.nn.functional as F

THREADS = 4
CLASSES = 5


class TileNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
        )
        self.decode = nn.Sequential(nn.ConvTranspose2d(2 * width, width, 2, 2), nn.ReLU(), nn.Conv2d(width, CLASSES, 1))

    def forward(self, tiles):
        return self.decode(self.encode(tiles))


def tiles(n, size=48):
    coarse = torch.randint(0, CLASSES, (n, 1, 6, 6)).float()
    mask = F.interpolate(coarse, size=size, mode="nearest").long().squeeze(1)
    palette = torch.linspace(-1, 1, 3 * CLASSES).view(CLASSES, 3)
    image = palette[mask].permute(0, 3, 1, 2) + 0.3 * torch.randn(n, 3, size, size)
    return image, mask


def main():
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    model = TileNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()
    print(f"{sum(p.numel() for p in model.parameters())} parameters, {torch.get_num_threads()} threads")
    for step in range(24):
        image, mask = tiles(4)
        optimizer.zero_grad()
        scores = model(image)
        loss = criterion(scores, mask)
        loss.backward()
        optimizer.step()
        if step % 6 == 5:
            accuracy = (scores.argmax(1) == mask).float().mean().item()
            print(f"step {step + 1}: loss {loss.item():.3f}, pixel accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
