"""The text tower of CLIP: a causal transformer over the tokens of a class name."""

import torch
from torch import nn

from .transformer import Block


class TextTower(nn.Module):
    def __init__(self, vocab: int, context: int, dim: int, heads: int, layers: int, pool: str = "eot") -> None:
        super().__init__()
        self.pool = pool
        self.token_embedding = nn.Embedding(vocab, dim)
        self.positional_embedding = nn.Parameter(torch.randn(context, dim) * 0.1)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(layers))
        self.ln_final = nn.LayerNorm(dim)
        causal = torch.full((context, context), float("-inf")).triu(1)
        self.register_buffer("causal", causal, persistent=False)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        x = self.token_embedding(text) + self.positional_embedding
        for block in self.blocks:
            x = block(x, self.causal)
        x = self.ln_final(x)
        if self.pool == "cls":
            return x[:, 0]
        return x[torch.arange(len(text)), text.argmax(dim=-1)]
