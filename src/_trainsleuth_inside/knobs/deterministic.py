"""Knob `deterministic`: operations give the same numbers each time.

Changes        `torch.use_deterministic_algorithms(True, warn_only=True)`; cuDNN does not choose by measuring
Mechanism      operations whose result depends on the order of threads
Not applicable when the program asks for that itself
"""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    torch = watch.torch
    if not torch.are_deterministic_algorithms_enabled():
        says(watch, "deterministic")()
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
