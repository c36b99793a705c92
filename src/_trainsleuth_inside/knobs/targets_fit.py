"""Knob `targets-fit`: each target of a CTC loss is one that CTC can read out of its input.

Changes        symbols with the blank's index leave the targets, and targets are cut to as many symbols as their inputs have frames for
Mechanism      targets with the blank, or longer than their inputs
Not applicable when no CTC loss is called, or all of its targets fit
"""

from __future__ import annotations

import functools
from typing import Any

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    torch = watch.torch
    functional = torch.nn.functional
    original = functional.ctc_loss
    acted = says(watch, "targets-fit")

    @functools.wraps(original)
    def ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, *args: Any, **kwargs: Any) -> Any:
        frames = [int(length) for length in torch.as_tensor(input_lengths).reshape(-1)]
        wanted = [int(length) for length in torch.as_tensor(target_lengths).reshape(-1)]
        given = _texts(targets, wanted)
        fitting = [_fitting([symbol for symbol in text if symbol != blank], room) for text, room in zip(given, frames)]
        if fitting != given:
            acted()
            targets = torch.tensor([symbol for text in fitting for symbol in text], dtype=targets.dtype, device=targets.device)
            target_lengths = torch.tensor([len(text) for text in fitting], dtype=torch.long)
        return original(log_probs, targets, input_lengths, target_lengths, blank, *args, **kwargs)

    functional.ctc_loss = ctc_loss


def _texts(targets: Any, wanted: list[int]) -> list[list[int]]:
    """The symbols of each target, of padded rows and of targets one behind the other."""
    if targets.dim() > 1:
        return [row[:length].tolist() for row, length in zip(targets, wanted)]
    flat = targets.tolist()
    ends = [sum(wanted[: at + 1]) for at in range(len(wanted))]
    return [flat[end - length : end] for end, length in zip(ends, wanted)]


def _fitting(text: list[int], room: int) -> list[int]:
    """As many symbols as there are frames for; between two equal ones CTC needs a blank."""
    kept: list[int] = []
    for symbol in text:
        room -= 2 if kept and kept[-1] == symbol else 1
        if room < 0:
            break
        kept.append(symbol)
    return kept
