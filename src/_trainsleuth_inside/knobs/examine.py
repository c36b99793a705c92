"""No knob but an instrument of a trial: looks for the first bad operation, or for who changed a tensor, near a given window."""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.instruments import examination


def turn(watch: Any, what: str, first: int, last: int) -> None:
    examination.begin(watch, what, first, last)
