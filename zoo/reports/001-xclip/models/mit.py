"""Multi-frame integration transformer: frame features to one feature of the clip."""

import torch
from torch import nn

from .transformer import Block


class MultiframeIntegrationTransformer(nn.Module):
    def __init__(self, frames: int, dim: int, heads: int, dropout: float, mask_is_valid: bool = False) -> None:
        super().__init__()
        self.mask_is_valid = mask_is_valid
        self.positional_embedding = nn.Parameter(torch.randn(frames, dim) * 0.1)
        self.block = Block(dim, heads, dropout)

    def forward(self, x: torch.Tensor, padded: torch.Tensor) -> torch.Tensor:
        x = x + self.block(x + self.positional_embedding)
        keep = padded if self.mask_is_valid else ~padded
        keep = keep.unsqueeze(-1).to(x.dtype)
        return (x * keep).sum(dim=1) / keep.sum(dim=1)
