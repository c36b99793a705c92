"""Knob `scaler-off`: losses are not scaled, and no step is skipped.

Changes        every GradScaler is built with `enabled=False`
Mechanism      steps that a scaler skips
Not applicable when the program has no scaler that is on
"""

from __future__ import annotations

import functools
from typing import Any

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    switch_off(watch, says(watch, "scaler-off"))


def switch_off(watch: Any, acted: Any) -> None:
    base = watch.torch.amp.GradScaler
    init = base.__init__

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        if self._enabled:
            acted()
            self._enabled = False

    base.__init__ = __init__
