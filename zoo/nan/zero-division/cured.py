"""Segmentation of cells from sparse scribbles: only the pixels that a student marked count."""
import torch
from torch import nn
from torch.nn import functional as F


class ScribbleLoss(nn.Module):
    def forward(self, logits, mask, labelled):
        per_pixel = F.binary_cross_entropy_with_logits(logits, mask, reduction="none")
        return (per_pixel * labelled).sum() / labelled.sum().clamp(min=1)


class Trainer:
    def __init__(self, steps):
        self.rng = torch.Generator().manual_seed(8)
        self.model = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1)
        )
        self.criterion = ScribbleLoss()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=6e-3)
        self.steps = steps

    def batch(self, size=4, side=16):
        grid = torch.arange(side).float()
        centre = 4 + 8 * torch.rand(size, 2, 1, 1, generator=self.rng)
        distance = ((grid[None, :, None] - centre[:, 0]) ** 2 + (grid[None, None, :] - centre[:, 1]) ** 2).sqrt()
        mask = (distance < 3.5).float().unsqueeze(1)
        image = mask + 0.5 * torch.randn(mask.shape, generator=self.rng)
        scribbled = torch.rand(size, 1, 1, 1, generator=self.rng) < 0.7
        labelled = (torch.rand(mask.shape, generator=self.rng) < 0.1) & scribbled
        return image, mask, labelled.float()

    def fit(self):
        for step in range(self.steps):
            image, mask, labelled = self.batch()
            logits = self.model(image)
            loss = self.criterion(logits, mask, labelled)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            if step % 25 == 0:
                iou = ((logits > 0) & (mask > 0)).sum() / ((logits > 0) | (mask > 0)).sum()
                print(f"[{step:03d}/{self.steps}] loss={loss.item():.4f} iou={iou.item():.3f}")


if __name__ == "__main__":
    torch.manual_seed(8)
    torch.set_num_threads(1)
    Trainer(steps=200).fit()
