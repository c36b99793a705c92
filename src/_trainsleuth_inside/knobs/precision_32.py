"""Knob `precision-32`: everything computes in 32 bit.

Changes        autocast regions and scalers are off, `.half()` and `.bfloat16()` do nothing
Mechanism      dtype in which layers compute
Not applicable when the program computes in 32 bit already
"""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.knobs import autocast_off, scaler_off
from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    acted = says(watch, "precision-32")
    autocast_off.switch_off(watch, acted)
    scaler_off.switch_off(watch, lambda **_: None)
    torch = watch.torch

    def unchanged(self: Any, *_: Any, **__: Any) -> Any:
        acted()
        return self

    for owner in (torch.nn.Module, torch.Tensor):
        owner.half = owner.bfloat16 = unchanged
