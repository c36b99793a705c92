"""Charbonnier loss and a perceptual loss on fixed random features in the place of VGG."""

import torch
import torch.nn as nn

from config import Config


class Charbonnier(nn.Module):
    def __init__(self, delta: float):
        super().__init__()
        self.delta = delta

    def forward(self, pred: torch.Tensor, sharp: torch.Tensor) -> torch.Tensor:
        return torch.sqrt((pred - sharp) ** 2 + self.delta**2).mean()


class Perceptual(nn.Module):
    MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

    def __init__(self, value_range: str):
        super().__init__()
        self.value_range = value_range
        with torch.random.fork_rng():
            torch.manual_seed(19)
            self.features = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(16, 16, 3, padding=1))
            nn.init.kaiming_normal_(self.features[0].weight)
            nn.init.kaiming_normal_(self.features[2].weight)
        self.features.requires_grad_(False)
        self.register_buffer("mean", torch.tensor(self.MEAN).view(3, 1, 1))
        self.register_buffer("std", torch.tensor(self.STD).view(3, 1, 1))

    def prepare(self, frames: torch.Tensor) -> torch.Tensor:
        frames = frames.flatten(0, 1)
        return 255 * frames if self.value_range == "bytes" else (frames - self.mean) / self.std

    def forward(self, pred: torch.Tensor, sharp: torch.Tensor) -> torch.Tensor:
        gap = self.features(self.prepare(pred)) - self.features(self.prepare(sharp))
        return (gap * gap).sum(dim=1).mean()


class DeblurLoss(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.charbonnier = Charbonnier(config.LOSS.CHARBONNIER.DELTA)
        self.perceptual = Perceptual(config.SWITCH.VGG_RANGE)
        self.weight = config.LOSS.VGG_PERCEPTUAL.WEIGHT
        self.clamp = config.SWITCH.CLAMP_BEFORE_LOSS

    def forward(self, pred: torch.Tensor, sharp: torch.Tensor) -> torch.Tensor:
        if self.clamp:
            pred, sharp = torch.clamp(pred, 0, 1), torch.clamp(sharp, 0, 1)
        return self.charbonnier(pred, sharp) + self.weight * self.perceptual(pred, sharp)
