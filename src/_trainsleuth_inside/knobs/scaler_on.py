"""Knob `scaler-on`: gradients are made from a scaled loss, and unscaled before the step.

Changes        `backward` multiplies the loss by 2**12; right before the step gradients are divided by it, and a step with an Inf is skipped. A
               scaler of the program's own that starts with less than 2**7 starts with 2**16, torch's own default
Mechanism      gradients that underflow in half precision
Not applicable when the program scales its losses itself, and by enough
"""

from __future__ import annotations

import functools
from typing import Any

from _trainsleuth_inside.knobs.acting import before_each_step, says

SCALE, USUAL, LOW = 4096.0, 65536.0, 128.0


def turn(watch: Any) -> None:
    torch = watch.torch
    acted = says(watch, "scaler-on")
    backward = torch.Tensor.backward
    pending = {"scaled": False}
    own = torch.amp.GradScaler.scale

    @functools.wraps(own)
    def scale(self: Any, outputs: Any) -> Any:
        pending["own"] = self._enabled  # one that is switched off (made for a device that is not there) scales nothing
        return own(self, outputs)

    @functools.wraps(backward)
    def scaled(self: Any, gradient: Any = None, *args: Any, **kwargs: Any) -> None:
        if pending.get("own") or self.numel() != 1 or gradient is not None:
            backward(self, gradient, *args, **kwargs)
            return
        acted(scale=SCALE)
        pending["scaled"] = True
        backward(self, torch.full_like(self, SCALE), *args, **kwargs)

    def unscale(optimizer: Any) -> None:
        if pending["scaled"]:
            pending["scaled"] = False
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.grad.div_(SCALE)
                        parameter.grad.nan_to_num_(0.0, 0.0, 0.0)

    init = torch.amp.GradScaler.__init__

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        if self._enabled and self._init_scale < LOW:
            self._init_scale = USUAL
            acted(scale=USUAL)

    torch.amp.GradScaler.__init__ = __init__
    torch.amp.GradScaler.scale = scale
    torch.Tensor.backward = scaled
    before_each_step(watch, unscale)
