"""Cross-frame communication: each frame sends one message token to all the others."""

import torch
from torch import nn

from .transformer import Block


class CrossFrameBlock(nn.Module):
    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.message_fc = nn.Linear(dim, dim)
        self.message_ln = nn.LayerNorm(dim)
        self.message_attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.block = Block(dim, heads, dropout)

    def forward(self, x: torch.Tensor, frames: int) -> torch.Tensor:
        message = self.message_fc(x[:, 0]).view(-1, frames, x.shape[-1])
        y = self.message_ln(message)
        message = message + self.message_attn(y, y, y, need_weights=False)[0]
        x = torch.cat([x, message.reshape(-1, 1, x.shape[-1])], dim=1)
        return self.block(x)[:, :-1]
