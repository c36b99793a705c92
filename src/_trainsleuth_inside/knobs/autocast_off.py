"""Knob `autocast-off`: nothing is cast to half precision on the way.

Changes        every `torch.autocast` region is switched off; scalers stay
Mechanism      dtype in which layers compute
Not applicable when the program uses no autocast
"""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    acted = says(watch, "autocast-off")
    switch_off(watch, acted)


def switch_off(watch: Any, acted: Any) -> None:
    base = watch.torch.autocast
    enter = base.__enter__

    def __enter__(self: Any) -> Any:
        if self._enabled:
            acted(dtype=str(self.fast_dtype))
            self._enabled = False
        return enter(self)

    base.__enter__ = __enter__
