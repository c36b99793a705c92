"""Data loaders for training and validation."""

import torch
from torch.utils.data import DataLoader

from .clips import ClipDataset


def collate(batch):
    clips, padded, labels = zip(*batch)
    return torch.stack(clips), torch.stack(padded), torch.stack(labels)


def collate_soft(batch):
    clips, padded, labels = zip(*batch)
    return torch.stack(clips), torch.stack(padded), torch.stack(labels).argmax(dim=1)


def build_dataloader(config) -> tuple[DataLoader, DataLoader]:
    train_data = ClipDataset(config, config.DATA.TRAIN_CLIPS_PER_CLASS, seed=config.SEED)
    val_data = ClipDataset(config, config.DATA.VAL_CLIPS_PER_CLASS, seed=config.SEED + 1)
    train_loader = DataLoader(
        train_data,
        batch_size=config.TRAIN.BATCH_SIZE,
        shuffle=True,
        drop_last=True,
        num_workers=config.DATA.NUM_WORKERS,
        collate_fn=collate_soft if config.SWITCH.LABEL == "constant" else collate,
        generator=torch.Generator().manual_seed(config.SEED),
    )
    val_loader = DataLoader(
        val_data, batch_size=config.TEST.BATCH_SIZE, num_workers=config.DATA.NUM_WORKERS, collate_fn=collate
    )
    return train_loader, val_loader
