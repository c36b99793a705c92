"""EfficientCRNN: the CRNN with depthwise separable convolutions after its first block."""

import torch
from torch import nn

from .crnn import SequenceReader, conv_block

STRIDES = {"strided": (2, 2), "strided_rows": (2, 1)}


class DepthwiseSeparableConv(nn.Module):
    """A 3x3 filter per channel, then a 1x1 convolution that mixes the channels."""

    def __init__(self, inputs: int, outputs: int, inplace: bool, norm: bool, pointwise: bool, stride: tuple[int, int]):
        super().__init__()
        if pointwise:
            self.depthwise = nn.Conv2d(inputs, inputs, 3, stride, padding=1, groups=inputs, bias=False)
            self.pointwise = nn.Conv2d(inputs, outputs, 1, bias=not norm)
        else:
            self.depthwise = nn.Conv2d(inputs, outputs, 3, stride, padding=1, groups=inputs, bias=not norm)
            self.pointwise = nn.Identity()
        self.bn = nn.BatchNorm2d(outputs) if norm else nn.Identity()
        self.relu = nn.ReLU(inplace=inplace)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.bn(self.pointwise(self.depthwise(x))))


class EfficientCRNN(nn.Module):
    def __init__(self, characters: int, width: int, hidden: int, inplace: bool, norm: bool, variant: str):
        super().__init__()
        options = (inplace, norm, variant != "no_pointwise", STRIDES.get(variant, (1, 1)))
        pool = nn.Identity() if variant in STRIDES else nn.MaxPool2d((2, 1))
        self.cnn = nn.Sequential(
            conv_block(1, width, inplace), nn.MaxPool2d(2),
            DepthwiseSeparableConv(width, 2 * width, *options), pool,
            DepthwiseSeparableConv(2 * width, 4 * width, *options), pool,
        )  # fmt: skip
        self.reader = SequenceReader(2 * 4 * width, hidden, characters)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.reader(self.cnn(images))
