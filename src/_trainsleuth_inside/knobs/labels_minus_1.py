"""Knob `labels-minus-1`: class labels are counted from zero.

Changes        integer targets of `cross_entropy` and `nll_loss` are one less, where they are above zero
Mechanism      the smallest and the largest label
Not applicable when a label is zero already, or the targets are no classes
"""

from __future__ import annotations

from typing import Any, Tuple

from _trainsleuth_inside.knobs.acting import around_losses, says


def turn(watch: Any) -> None:
    acted = says(watch, "labels-minus-1")

    def prepare(name: str, input: Any, target: Any) -> Tuple[Any, Any]:
        if target.is_floating_point() or target.numel() == 0 or not bool((target > 0).all()):
            return input, target
        acted()
        return input, target - 1

    around_losses(watch, ("cross_entropy", "nll_loss"), prepare)
