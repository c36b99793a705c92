"""Knob `backward-outside-autocast`: backward runs outside of autocast regions.

Changes        autocast is off during `Tensor.backward`
Mechanism      backwards inside an autocast region
Not applicable when no backward runs inside one
"""

from __future__ import annotations

import functools
from typing import Any

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    torch = watch.torch
    acted = says(watch, "backward-outside-autocast")
    backward = torch.Tensor.backward

    @functools.wraps(backward)
    def outside(self: Any, *args: Any, **kwargs: Any) -> None:
        if torch.is_autocast_enabled(self.device.type):
            acted()
        with torch.autocast(self.device.type, enabled=False):
            backward(self, *args, **kwargs)

    torch.Tensor.backward = outside
