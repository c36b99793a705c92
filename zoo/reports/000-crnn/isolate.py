"""The report's own test of in-place ReLU: each component alone, then all of them, and 50 steps of training compared bit by bit.

    python isolate.py [STEPS]
"""

import itertools
import sys
import time

import torch
from torch import nn

from config import Config
from data import ALPHABET, BLANK, build_loaders
from models import build_model

CHARACTERS = len(ALPHABET) + 1


def seconds(function) -> float:
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def components(config, batch) -> dict[str, float]:
    """Seconds that the backward of each combination takes."""
    images, targets, lengths = batch
    model = build_model(config, CHARACTERS)
    ctc = nn.CTCLoss(blank=BLANK, zero_infinity=True)
    features = model.cnn(images)
    leaf = features.detach().requires_grad_()
    log_probs = model.reader(features.detach()).detach().requires_grad_()
    frames = torch.full((len(images),), len(log_probs))
    losses = {
        "CNN": model.cnn(images).sum(),
        "LSTM": model.reader(leaf).sum(),
        "CTC": ctc(log_probs, targets, frames, lengths),
        "CNN + LSTM + sum": model(images).sum(),
        "CNN + LSTM + CTC": ctc(model(images), targets, frames, lengths),
    }
    return {name: seconds(loss.backward) for name, loss in losses.items()}


def train(config, steps: int) -> tuple[list[float], list[torch.Tensor]]:
    """Losses of all steps and the gradients of the last."""
    torch.manual_seed(config.SEED)
    model = build_model(config, CHARACTERS).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=config.TRAIN.LR)
    ctc = nn.CTCLoss(blank=BLANK, zero_infinity=True)
    loader, _ = build_loaders(config)
    torch.manual_seed(config.SEED)
    losses = []
    for images, targets, lengths in itertools.islice(loader, steps):
        log_probs = model(images)
        loss = ctc(log_probs, targets, torch.full((len(images),), len(log_probs)), lengths)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [p.grad for p in model.parameters()]


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    torch.set_num_threads(1)
    config = Config.load("config.yaml", ["DATA.TRAIN_LINES", str(16 * steps), "DATA.VAL_LINES", "1"])
    batch = next(iter(build_loaders(config)[0]))
    for inplace in (False, True):
        config.SWITCH.INPLACE_RELU = inplace
        words = ", ".join(f"{name} {s * 1000:.0f} ms" for name, s in components(config, batch).items())
        print(f"backward, in-place {inplace}: {words}", flush=True)

    for name, mkldnn in itertools.product(("crnn", "efficient", "attention"), (True, False)):
        torch.backends.mkldnn.enabled = mkldnn
        config.MODEL.NAME = name
        runs = []
        for inplace in (False, True):
            config.SWITCH.INPLACE_RELU = inplace
            runs.append(train(config, steps))
        (losses, grads), (losses_inplace, grads_inplace) = runs
        same_losses = sum(a == b for a, b in zip(losses, losses_inplace))
        same_grads = sum(torch.equal(a, b) for a, b in zip(grads, grads_inplace))
        print(
            f"{name}, oneDNN {'on' if mkldnn else 'off'}: {same_losses} of {len(losses)} losses and {same_grads} of {len(grads)} "
            f"gradients bit-identical (loss {losses[0]:.4f} to {losses[-1]:.4f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
