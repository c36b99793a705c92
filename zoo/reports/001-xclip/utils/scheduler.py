"""Learning rate: linear warm-up, then cosine."""

import math

import torch


class WarmupCosine:
    def __init__(self, optimizer: torch.optim.Optimizer, lr: float, total: int, warmup: int) -> None:
        self.optimizer = optimizer
        self.lr, self.lr_min, self.lr_start = lr, lr / 100, lr / 1000
        self.total, self.warmup = total, warmup
        self.step_update(0)

    def rate(self, t: int) -> float:
        if t < self.warmup:
            return self.lr_start + (self.lr - self.lr_start) * t / self.warmup
        done = min((t - self.warmup) / max(self.total - self.warmup, 1), 1.0)
        return self.lr_min + (self.lr - self.lr_min) * (1 + math.cos(math.pi * done)) / 2

    def step_update(self, num_updates: int) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(num_updates)


def build_scheduler(config, optimizer: torch.optim.Optimizer, n_iter_per_epoch: int) -> WarmupCosine:
    total = int(config.TRAIN.EPOCHS * n_iter_per_epoch)
    warmup = int(config.TRAIN.WARMUP_EPOCHS * n_iter_per_epoch)
    return WarmupCosine(optimizer, config.TRAIN.LR, total, warmup)
