"""One epoch of training, and validation."""

import time

import torch
from torch import nn

from utils.metrics import AverageMeter, mean_average_precision, topk_hits


def autocast(config, enabled: bool = True) -> torch.autocast:
    enabled = enabled and config.TRAIN.OPT_LEVEL != "O0"
    return torch.autocast("cpu", dtype=getattr(torch, config.TRAIN.AMP_DTYPE), enabled=enabled)


def class_index(label_id: torch.Tensor, config, logger) -> torch.Tensor:
    if label_id.ndim == 2:
        if label_id.shape[1] > 1:
            label_id = label_id.argmax(dim=1)
        else:
            label_id = label_id.squeeze(dim=1)
    label_id = label_id.long()
    if label_id.max() >= config.DATA.NUM_CLASSES:
        logger.warning(f"Label index >= {config.DATA.NUM_CLASSES} detected.")
        label_id = label_id - 1
    return label_id


def clear_gradients(idx: int, optimizer: torch.optim.Optimizer, config) -> None:
    acc, variant = config.TRAIN.ACCUMULATION_STEPS, config.SWITCH.ACCUM
    if variant == "original":
        if acc == 1:
            optimizer.zero_grad()
    elif variant == "recommended":
        if (idx == 0) or (acc == 1) or ((idx + 1) % acc == 0):
            optimizer.zero_grad()
    elif variant == "every":
        optimizer.zero_grad()
    elif idx % acc == 0:
        optimizer.zero_grad()


def train_one_epoch(
    epoch: int,
    model: nn.Module,
    criterion: nn.Module,
    optimizer: torch.optim.Optimizer,
    lr_scheduler,
    train_loader,
    text: torch.Tensor,
    config,
    scaler: torch.amp.GradScaler,
    logger,
) -> None:
    if not config.SWITCH.NO_TRAIN_CALL:
        model.train()
    num_steps, acc = len(train_loader), config.TRAIN.ACCUMULATION_STEPS
    tot_loss_meter, batch_time = AverageMeter(), AverageMeter()
    end = time.time()

    for idx, (clips, padded, label_id) in enumerate(train_loader):
        label_id = class_index(label_id, config, logger)
        with autocast(config):
            output = model(clips, padded, text)
        with autocast(config, enabled=not config.SWITCH.HALF_LOSS):
            total_loss = criterion(output, label_id)
            total_loss = total_loss / acc

        clear_gradients(idx, optimizer, config)
        scaler.scale(total_loss).backward()
        if (idx + 1) % acc == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            if config.SWITCH.WARMUP == "in_updates":
                lr_scheduler.step_update((epoch * num_steps + idx) // acc)
            elif config.SWITCH.WARMUP == "never_ends":
                lr_scheduler.step_update(epoch)
            else:
                lr_scheduler.step_update(epoch * num_steps + idx)

        tot_loss_meter.update(total_loss.item(), len(label_id))
        batch_time.update(time.time() - end)
        end = time.time()
        if idx % config.PRINT_FREQ == 0:
            logger.info(
                f"Train: [{epoch}/{config.TRAIN.EPOCHS}][{idx}/{num_steps}]    "
                f"tot_loss {tot_loss_meter.val:.4f} ({tot_loss_meter.avg:.4f})    "
                f"lr {optimizer.param_groups[0]['lr']:.9f}    "
                f"time {batch_time.val:.4f} ({batch_time.avg:.4f})"
            )


@torch.no_grad()
def validate(val_loader, text: torch.Tensor, model: nn.Module, config, logger) -> float:
    model.eval()
    similarities, labels = [], []
    for clips, padded, label_id in val_loader:
        with autocast(config):
            output = model(clips, padded, text)
        similarities.append((output if config.SWITCH.HALF_LOSS else output.float()).softmax(dim=-1))
        labels.append(class_index(label_id, config, logger))
    similarity, label_id = torch.cat(similarities), torch.cat(labels)
    acc1, acc5 = (topk_hits(similarity, label_id, k) / len(label_id) for k in (1, 5))
    mean_ap = mean_average_precision(similarity, label_id)
    logger.info(f" * Acc@1 {acc1:.4f} Acc@5 {acc5:.4f} mAP {mean_ap:.4f}")
    return acc1
