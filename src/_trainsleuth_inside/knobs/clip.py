"""Knob `clip`: the norm of all gradients of an optimizer is limited before each step, or a limit is taken away.

Changes        with a norm (1.0 unless told): `clip_grad_norm_` right before each step; with norm 0: the program's own clipping does nothing
Mechanism      norm of the gradient that a step uses
Not applicable when no gradient exceeds the norm, or nothing is clipped that could be left alone
"""

from __future__ import annotations

import functools
from typing import Any

from _trainsleuth_inside.knobs.acting import before_each_step, says


def turn(watch: Any, norm: float = 1.0) -> None:
    utilities = watch.torch.nn.utils
    clip = utilities.clip_grad_norm_
    acted = says(watch, "clip")

    def limit(optimizer: Any) -> None:
        held = [parameter for group in optimizer.param_groups for parameter in group["params"] if parameter.grad is not None]
        if held and float(clip(held, norm)) > norm:
            acted(norm=norm)

    @functools.wraps(clip)
    def unlimited(parameters: Any, max_norm: float, *args: Any, **kwargs: Any) -> Any:
        acted(norm=0)
        return clip(parameters, float("inf"), *args, **kwargs)

    if norm > 0:
        before_each_step(watch, limit)
    else:
        utilities.clip_grad_norm_ = unlimited
