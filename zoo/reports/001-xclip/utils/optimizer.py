"""Which parameters are trained, and the optimizer that trains them."""

import torch
from torch import nn


def fix_text(model: nn.Module) -> None:
    for name, param in model.named_parameters():
        if "visual." in name or "mit" in name or "prompts" in name or "graph" in name:
            continue
        else:
            param.requires_grad = False


def train_video_side_only(model: nn.Module) -> None:
    for name, param in model.named_parameters():
        param.requires_grad = name.startswith(("visual.", "mit.", "prompts")) or "logit_scale" in name


def build_optimizer(config, model: nn.Module, logger) -> torch.optim.Optimizer:
    if config.MODEL.FIX_TEXT:
        if config.SWITCH.FREEZE_TOO_MUCH:
            train_video_side_only(model)
        else:
            fix_text(model)
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    logger.info(f"trainable paras number: {sum(p.numel() for _, p in trained)}")
    groups = [
        {"params": [p for _, p in trained if p.ndim > 1], "weight_decay": config.TRAIN.WEIGHT_DECAY},
        {"params": [p for _, p in trained if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=config.TRAIN.LR, betas=(0.9, 0.98), eps=1e-8)
