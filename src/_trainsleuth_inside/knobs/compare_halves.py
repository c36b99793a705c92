"""No knob but an instrument of a trial: in some windows, each module computes once more in 32 bit on the same inputs, and is compared."""

from __future__ import annotations

from typing import Any, Sequence

from _trainsleuth_inside.instruments import half_errors


def turn(watch: Any, windows: Sequence[int] = (1,)) -> None:
    half_errors.begin(watch, frozenset(int(window) for window in windows))
