"""Shifted-window attention over video: (batch, frames, rows, columns, channels), windows in all three axes."""

import torch
import torch.nn as nn
import torch.nn.functional as F

Size = tuple[int, int, int]


def windows_of(x: torch.Tensor, size: Size) -> torch.Tensor:
    """(B, T, H, W, C) to (B * windows, tokens of a window, C)."""
    b, t, h, w, c = x.shape
    x = x.view(b, t // size[0], size[0], h // size[1], size[1], w // size[2], size[2], c)
    return x.permute(0, 1, 3, 5, 2, 4, 6, 7).reshape(-1, size[0] * size[1] * size[2], c)


def video_of(windows: torch.Tensor, size: Size, shape: tuple[int, int, int, int]) -> torch.Tensor:
    b, t, h, w = shape
    x = windows.view(b, t // size[0], h // size[1], w // size[2], *size, -1)
    return x.permute(0, 1, 4, 2, 5, 3, 6, 7).reshape(b, t, h, w, -1)


class WindowAttention(nn.Module):
    def __init__(self, dim: int, heads: int, window: Size, shifted: bool, mask_queries: bool):
        super().__init__()
        self.heads, self.window, self.mask_queries = heads, window, mask_queries
        self.shift = tuple(size // 2 if shifted else 0 for size in window)
        tokens = window[0] * window[1] * window[2]
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.position = nn.Parameter(torch.zeros(heads, tokens, tokens))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, h, w, c = x.shape
        padding = -t % self.window[0]
        x = F.pad(x, (0, 0, 0, 0, 0, 0, 0, padding))
        x = torch.roll(x, [-s for s in self.shift], dims=(1, 2, 3))
        out = self.attend(windows_of(x, self.window), self.mask(t, t + padding, h, w))
        x = video_of(out, self.window, (b, t + padding, h, w))
        return torch.roll(x, self.shift, dims=(1, 2, 3))[:, :t]

    def attend(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        n, tokens, c = x.shape
        q, k, v = self.qkv(x).view(n, tokens, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * (c // self.heads) ** -0.5 + self.position
        scores = scores.view(-1, len(mask), self.heads, tokens, tokens) + mask[:, None]
        weights = scores.softmax(dim=-1).view(n, self.heads, tokens, tokens)
        return self.proj((weights @ v).transpose(1, 2).reshape(n, tokens, c))

    def mask(self, frames: int, padded: int, h: int, w: int) -> torch.Tensor:
        """-inf where a token must not look: over the edge that the roll has closed, and at padded frames."""
        region = torch.zeros(1, padded, h, w, 1)
        for axis, (length, size, shift) in enumerate(zip((padded, h, w), self.window, self.shift)):
            label = torch.zeros(length)
            if shift:
                label[length - size : length - shift], label[length - shift :] = 1, 2
            region = region * 3 + label.view([length if a == axis + 1 else 1 for a in range(5)])
        region = windows_of(region, self.window).squeeze(-1)
        forbidden = region[:, :, None] != region[:, None, :]
        real = (torch.arange(padded) < frames).view(1, padded, 1, 1, 1).expand(1, padded, h, w, 1).float()
        real = windows_of(torch.roll(real, [-s for s in self.shift], dims=(1, 2, 3)), self.window).squeeze(-1) > 0
        if self.mask_queries:
            forbidden = forbidden | ~real[:, None, :] | ~real[:, :, None]
        else:
            forbidden = forbidden | (~real[:, None, :] & real[:, :, None])
        return torch.zeros(forbidden.shape).masked_fill(forbidden, float("-inf"))
