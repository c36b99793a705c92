"""Training loop: accumulation, clipping, mixed precision, checkpointing, compilation, as the configuration says."""

import contextlib
import math
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from config import Config
from data import SpikeDeblurDataset, write_sequences
from losses import DeblurLoss
from models.vrt import VRT


def run(config: Config, root: Path) -> None:
    torch.set_num_threads(config.NUM_THREADS)
    random.seed(config.SEED)
    np.random.seed(config.SEED)
    torch.manual_seed(config.SEED)
    write_sequences(root, config)
    dataset = SpikeDeblurDataset(root, config)
    loader = DataLoader(dataset, config.TRAIN.BATCH_SIZE, shuffle=True, num_workers=config.DATA.WORKERS)
    model = prepare(VRT(config), config)
    criterion = DeblurLoss(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.TRAIN.OPTIM.LR)
    print(f"estimated memory: {estimate_gb(model, config):.4f} GB")
    trainer = Trainer(model, criterion, optimizer, config)
    with scalars(config.LOG.TENSORBOARD) as add_scalar:
        for epoch in range(config.TRAIN.EPOCHS):
            loss, psnr = trainer.epoch(loader)
            add_scalar("train/loss", loss, epoch)
            add_scalar("train/psnr", psnr, epoch)
            print(f"epoch {epoch + 1} loss {loss:.4f} psnr {psnr:.2f}", flush=True)


def prepare(model: nn.Module, config: Config) -> nn.Module:
    if config.SWITCH.CHANNELS_LAST == "all":
        model = model.to(memory_format=torch.channels_last)
    elif config.SWITCH.CHANNELS_LAST == "conv_only":
        for module in model.modules():
            if isinstance(module, nn.Conv2d):
                module.to(memory_format=torch.channels_last)
    if config.TRAIN.COMPILE_MODEL:
        model = torch.compile(model, backend=config.TRAIN.COMPILE_BACKEND)
    return model


def estimate_gb(model: nn.Module, config: Config) -> float:
    if config.SWITCH.MEMORY == "fixed":
        return 10.0
    parameters = sum(p.numel() * p.element_size() for p in model.parameters()) / 1024**3
    return parameters + 2 * parameters + 10


@contextlib.contextmanager
def scalars(folder: str) -> Iterator:
    if not folder:
        yield lambda name, value, step: None
        return
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(folder) as writer:
        yield writer.add_scalar


class Trainer:
    def __init__(self, model: nn.Module, criterion: nn.Module, optimizer: torch.optim.Optimizer, config: Config):
        self.model, self.criterion, self.optimizer, self.config = model, criterion, optimizer, config
        self.half = config.TRAIN.MIXED_PRECISION
        self.scaler = torch.amp.GradScaler("cpu", init_scale=256.0, enabled=self.half)
        self.step = 0

    def epoch(self, loader: DataLoader) -> tuple[float, float]:
        self.model.train()
        losses, errors = [], []
        accum = self.config.TRAIN.ACCUM
        for micro, (clip, sharp) in enumerate(loader):
            if self.config.SWITCH.CHANNELS_LAST == "all":
                clip = clip.to(memory_format=torch.channels_last)
            with torch.autocast("cpu", dtype=torch.float16, enabled=self.half):
                restored = self.model(clip)
                loss = self.criterion(restored, sharp)
            if self.config.SWITCH.STOP_ON_NAN and not torch.isfinite(loss):
                self.report_nan()
            self.scaler.scale(loss / accum).backward()
            if (micro + 1) % accum == 0 or micro + 1 == len(loader):
                self.update()
            losses.append(loss.item())
            errors.append(nn.functional.mse_loss(restored.detach().float(), sharp).item())
        psnr = -10 * math.log10(np.mean(errors)) if np.mean(errors) > 0 else float("nan")
        return float(np.mean(losses)), psnr

    def update(self) -> None:
        self.scaler.unscale_(self.optimizer)
        if self.config.TRAIN.MAX_GRAD_NORM:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.config.TRAIN.MAX_GRAD_NORM)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1

    def report_nan(self) -> None:
        print(f"[Step {self.step}] NaN/Inf detected in loss!")
        for name, parameter in self.model.named_parameters():
            if not torch.isfinite(parameter).all():
                print(f" -> NaN/Inf in parameter: {name}")
        raise SystemExit(1)
