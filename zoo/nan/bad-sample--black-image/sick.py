"""Grades of microscope images, read with two workers."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slides(Dataset):
    def __init__(self, count=640, side=20):
        rng = np.random.default_rng(40)
        self.grades = rng.random(count).astype(np.float32)
        spots = rng.random((count, side, side)) < 0.03 + 0.15 * self.grades[:, None, None]
        exposure = rng.integers(80, 255, size=(count, 1, 1))
        self.images = (spots * exposure).astype(np.uint8)
        self.images[402] = 0

    def __len__(self):
        return len(self.images)

    def __getitem__(self, k):
        image = torch.from_numpy(self.images[k]).float()
        image = image / image.max()
        return image.unsqueeze(0), self.grades[k]


def main():
    torch.manual_seed(14)
    torch.set_num_threads(1)
    loader = DataLoader(Slides(), batch_size=20, shuffle=True, num_workers=2, persistent_workers=True)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 1),
    )
    criterion = nn.SmoothL1Loss()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for epoch in range(6):
        history = []
        for image, grade in loader:
            loss = criterion(model(image).squeeze(1), grade)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history.append(loss.item())
        print(f"Epoch {epoch + 1}: first {history[0]:.4f} mean {np.mean(history):.5f}")


if __name__ == "__main__":
    main()
