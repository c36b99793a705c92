"""Video-specific prompts: class names look at the clip before they are compared with it."""

import torch
from torch import nn


class VideoSpecificPrompt(nn.Module):
    def __init__(self, dim: int, heads: int, alpha: float = 1e-4) -> None:
        super().__init__()
        self.ln_text, self.ln_video = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.cross_attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim * 2), nn.GELU(), nn.Linear(dim * 2, dim))
        self.alpha = nn.Parameter(torch.full((dim,), alpha))

    def forward(self, text: torch.Tensor, patches: torch.Tensor) -> torch.Tensor:
        query, video = self.ln_text(text), self.ln_video(patches)
        x = text + self.cross_attn(query, video, video, need_weights=False)[0]
        return self.alpha * (x + self.mlp(x))
