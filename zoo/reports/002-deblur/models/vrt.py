"""A small video restoration transformer: spatial embedding of frames and spikes, window attention blocks, a residual image."""

import random

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

from config import Config
from models.window_attention import WindowAttention


def drop_path(x: torch.Tensor, drop_prob: float, training: bool, rng: str) -> torch.Tensor:
    if drop_prob == 0.0 or not training:
        return x
    if rng == "python":
        keep = torch.tensor([float(random.random() >= drop_prob) for _ in range(x.shape[0])])
    else:
        keep = (torch.rand(x.shape[0]) >= drop_prob).float()
    return x * keep.view(-1, 1, 1, 1, 1) / (1 - drop_prob)


class Block(nn.Module):
    def __init__(self, dim: int, index: int, config: Config):
        super().__init__()
        window, mask_queries = tuple(config.MODEL.WINDOW), config.SWITCH.PAD_MASK == "keys_and_queries"
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = WindowAttention(dim, config.MODEL.HEADS, window, index % 2 == 1, mask_queries)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.drop_prob = config.MODEL.DROP_PATH * index / max(1, config.MODEL.DEPTH - 1)
        self.rng = config.SWITCH.DROP_PATH_RNG

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + drop_path(self.attention(self.norm1(x)), self.drop_prob, self.training, self.rng)
        return x + drop_path(self.mlp(self.norm2(x)), self.drop_prob, self.training, self.rng)


class VRT(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        dim = config.MODEL.DIM
        self.checkpoint = config.MODEL.CHECKPOINT
        self.embed = nn.Conv2d(3 + config.DATA.SPIKE_BINS, dim, 3, padding=1)
        self.blocks = nn.ModuleList(Block(dim, index, config) for index in range(config.MODEL.DEPTH))
        self.norm = nn.LayerNorm(dim)
        self.restore = nn.Conv2d(dim, 3, 3, padding=1)
        nn.init.zeros_(self.restore.weight)
        nn.init.zeros_(self.restore.bias)

    def forward(self, clip: torch.Tensor) -> torch.Tensor:
        """(batch, frames, 3 + spike bins, rows, columns) to sharp frames (batch, frames, 3, rows, columns)."""
        b, t, _, h, w = clip.shape
        x = self.embed(clip.flatten(0, 1)).view(b, t, -1, h, w).permute(0, 1, 3, 4, 2)
        for block in self.blocks:
            if self.checkpoint == "none" or not self.training:
                x = block(x)
            else:
                x = checkpoint(block, x, use_reentrant=self.checkpoint == "reentrant")
        x = self.norm(x).permute(0, 1, 4, 2, 3)
        return clip[:, :, :3] + self.restore(x.flatten(0, 1)).view(b, t, 3, h, w)
