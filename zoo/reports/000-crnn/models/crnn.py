"""CRNN: convolutions read strokes, a bidirectional LSTM reads along the line."""

import torch
from torch import nn


def conv_block(inputs: int, outputs: int, inplace: bool, norm: bool = True) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=not norm),
        nn.BatchNorm2d(outputs) if norm else nn.Identity(),
        nn.ReLU(inplace=inplace),
    )


class SequenceReader(nn.Module):
    """Columns of the feature map, left to right, through the LSTM to log-probabilities (time, batch, characters)."""

    def __init__(self, channels: int, hidden: int, characters: int):
        super().__init__()
        self.rnn = nn.LSTM(channels, hidden, bidirectional=True)
        self.fc = nn.Linear(2 * hidden, characters)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        columns = features.flatten(1, 2).permute(2, 0, 1)
        return self.fc(self.rnn(columns)[0]).log_softmax(dim=2)


class CRNN(nn.Module):
    def __init__(self, characters: int, width: int, hidden: int, inplace: bool, norm: bool):
        super().__init__()
        self.cnn = nn.Sequential(
            conv_block(1, width, inplace), nn.MaxPool2d(2),
            conv_block(width, 2 * width, inplace, norm), nn.MaxPool2d((2, 1)),
            conv_block(2 * width, 4 * width, inplace, norm), nn.MaxPool2d((2, 1)),
        )  # fmt: skip
        self.reader = SequenceReader(2 * 4 * width, hidden, characters)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.reader(self.cnn(images))
