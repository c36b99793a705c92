"""Knob `precision-32`: everything computes in 32 bit.

Changes        autocast regions and scalers are off; `.half()` and `.bfloat16()` do nothing, `.to(torch.bfloat16)` and the like give 32 bit; what a
               model is given in 16 bit it gets in 32
Mechanism      dtype in which layers compute
Not applicable when the program computes in 32 bit already
"""

from __future__ import annotations

import functools
from typing import Any

from _trainsleuth_inside.knobs import autocast_off, scaler_off
from _trainsleuth_inside.knobs.acting import only_in_models, says


def turn(watch: Any) -> None:
    acted = says(watch, "precision-32")
    autocast_off.switch_off(watch, acted)
    scaler_off.switch_off(watch, lambda **_: None)
    torch = watch.torch

    def unchanged(self: Any, *_: Any, **__: Any) -> Any:
        acted()
        return self

    halves = (torch.float16, torch.bfloat16)
    to = torch.nn.Module.to

    @functools.wraps(to)
    def wide(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = to(self, *args, **kwargs)
        if any(parameter.dtype in halves for parameter in self.parameters()):
            acted()
            self.float()
        return result

    def widened(value: Any) -> Any:
        return value.float() if isinstance(value, torch.Tensor) and value.dtype in halves else value

    def around(model: Any, call: Any, args: Any, kwargs: Any) -> Any:
        return call(model, *map(widened, args), **{name: widened(value) for name, value in kwargs.items()})

    torch.nn.Module.to = wide
    for owner in (torch.nn.Module, torch.Tensor):
        owner.half = owner.bfloat16 = unchanged
    only_in_models(watch, around)
