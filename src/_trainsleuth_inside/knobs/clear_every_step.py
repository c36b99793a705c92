"""Knob `clear-every-step`: gradients are cleared right after each step.

Changes        the optimizer's gradients are set to zero after its step
Mechanism      windows that begin with the gradients of an earlier one
Not applicable when they are clear by then anyway
"""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.knobs.acting import after_each_step, says


def turn(watch: Any) -> None:
    acted = says(watch, "clear-every-step")
    clear = watch.torch.optim.Optimizer.zero_grad

    def follow(optimizer: Any) -> None:
        clear(optimizer, set_to_none=False)
        acted()

    after_each_step(watch, follow)
