"""AttentionCRNN: the CRNN with its ordinary convolutions, and channel attention after each of the later blocks."""

import torch
from torch import nn

from .crnn import SequenceReader, conv_block


class ChannelAttention(nn.Module):
    def __init__(self, channels: int, inplace: bool, reduction: int = 4):
        super().__init__()
        self.gate = nn.Sequential(
            nn.Linear(channels, channels // reduction), nn.ReLU(inplace=inplace),
            nn.Linear(channels // reduction, channels), nn.Sigmoid(),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gate(x.mean(dim=(2, 3)))[:, :, None, None]


class AttentionCRNN(nn.Module):
    def __init__(self, characters: int, width: int, hidden: int, inplace: bool, norm: bool):
        super().__init__()
        self.cnn = nn.Sequential(
            conv_block(1, width, inplace), nn.MaxPool2d(2),
            conv_block(width, 2 * width, inplace, norm), ChannelAttention(2 * width, inplace), nn.MaxPool2d((2, 1)),
            conv_block(2 * width, 4 * width, inplace, norm), ChannelAttention(4 * width, inplace), nn.MaxPool2d((2, 1)),
        )  # fmt: skip
        self.reader = SequenceReader(2 * 4 * width, hidden, characters)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.reader(self.cnn(images))
