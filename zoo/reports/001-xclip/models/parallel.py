"""What DistributedDataParallel does to a model, for a single process: one more level of names."""

import torch
from torch import nn


class SingleProcess(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.module(*inputs)
