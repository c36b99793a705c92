"""Frames to features: convolutional patches, then transformer blocks that exchange messages."""

import torch
from torch import nn

from .message import CrossFrameBlock


class FrameEncoder(nn.Module):
    def __init__(self, size: int, patch: int, dim: int, heads: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.patches = nn.Sequential(nn.Conv2d(3, dim, patch, stride=patch, bias=False), nn.BatchNorm2d(dim))
        self.class_embedding = nn.Parameter(torch.randn(dim) * 0.1)
        self.positional_embedding = nn.Parameter(torch.randn((size // patch) ** 2 + 1, dim))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(CrossFrameBlock(dim, heads, dropout) for _ in range(layers))
        self.ln_post = nn.LayerNorm(dim)
        self.proj = nn.Linear(dim, dim, bias=False)

    def forward(self, clips: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        b, t = clips.shape[:2]
        x = self.patches(clips.flatten(0, 1)).flatten(2).transpose(1, 2)
        cls = self.class_embedding.to(x.dtype).expand(b * t, 1, -1)
        x = self.dropout(torch.cat([cls, x], dim=1) + self.positional_embedding)
        for block in self.blocks:
            x = block(x, t)
        x = self.proj(self.ln_post(x))
        return x.mean(dim=1).view(b, t, -1), x[:, 1:].view(b, t, -1, x.shape[-1])
