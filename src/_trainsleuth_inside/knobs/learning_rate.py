"""Knob `learning-rate`: every learning rate is multiplied by a factor, for the step alone.

Changes        `lr` of each group right before a step; right after it is what the program and its schedule make of it
Mechanism      size of a step
Not applicable when the learning rate is zero
"""

from __future__ import annotations

from typing import Any, Dict, List

from _trainsleuth_inside.knobs.acting import after_each_step, before_each_step, says


def turn(watch: Any, factor: float = 10.0, hold: bool = False) -> None:
    """`hold`: no step has a higher rate than the first one had."""
    acted = says(watch, "learning-rate")
    own: Dict[int, List[Any]] = {}
    first: Dict[int, List[Any]] = {}

    def change(optimizer: Any) -> None:
        own[id(optimizer)] = [group.get("lr") for group in optimizer.param_groups]
        limits = first.setdefault(id(optimizer), own[id(optimizer)]) if hold else []
        for index, group in enumerate(optimizer.param_groups):
            if not group.get("lr"):
                continue
            rate = group["lr"] * factor
            if index < len(limits) and limits[index] and rate > limits[index]:
                rate = limits[index]
            if rate is not group["lr"] and bool(rate != group["lr"]):
                group["lr"] = rate
                acted(factor=factor)

    def restore(optimizer: Any) -> None:
        for group, rate in zip(optimizer.param_groups, own.pop(id(optimizer), [])):
            if rate is not None:
                group["lr"] = rate

    before_each_step(watch, change)
    after_each_step(watch, restore)
