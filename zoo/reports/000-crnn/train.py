"""One epoch of training, validation, and the run made of them."""

import time

import torch
from data import ALPHABET, BLANK, build_loaders
from decode import edit_distance, greedy
from models import build_model
from torch import nn


def train_one_epoch(epoch, model, loader, criterion, optimizer, config) -> float:
    model.train()
    total = 0.0
    for step, (images, targets, target_lengths) in enumerate(loader):
        log_probs = model(images)
        input_lengths = torch.full((len(images),), len(log_probs))
        loss = criterion(log_probs, targets, input_lengths, target_lengths)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), config.TRAIN.CLIP)
        optimizer.step()
        total += loss.item()
        if config.PRINT_FREQ and step % config.PRINT_FREQ == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)
    return total / len(loader)


@torch.no_grad()
def validate(model, loader) -> tuple[float, float]:
    """Character error rate, and the share of lines that are read without an error."""
    model.eval()
    errors = characters = exact = lines = 0
    for images, targets, target_lengths in loader:
        for read, label in zip(greedy(model(images)), targets.split(target_lengths.tolist())):
            distance = edit_distance(read, label.tolist())
            errors, characters = errors + distance, characters + len(label)
            exact, lines = exact + (distance == 0), lines + 1
    return errors / characters, exact / lines


def run(config) -> None:
    torch.backends.mkldnn.enabled = config.SWITCH.MKLDNN
    if config.NUM_THREADS:
        torch.set_num_threads(config.NUM_THREADS)
    torch.manual_seed(config.SEED)
    train_loader, val_loader = build_loaders(config)
    torch.manual_seed(config.SEED)
    model = build_model(config, len(ALPHABET) + 1)
    criterion = nn.CTCLoss(blank=BLANK, zero_infinity=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.TRAIN.LR)
    print(f"{type(model).__name__}: {sum(p.numel() for p in model.parameters())} parameters", flush=True)

    for epoch in range(1, config.TRAIN.EPOCHS + 1):
        begin = time.time()
        loss = train_one_epoch(epoch, model, train_loader, criterion, optimizer, config)
        cer, accuracy = validate(model, val_loader)
        print(f"epoch {epoch} loss {loss:.4f} CER {cer:.4f} accuracy {accuracy:.4f} ({time.time() - begin:.1f} s)", flush=True)
