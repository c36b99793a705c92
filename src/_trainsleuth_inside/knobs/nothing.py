"""Knob `nothing`, a placebo: the trial machinery runs, and nothing is changed.

Changes        nothing
Mechanism      none
Not applicable when never
"""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    says(watch, "nothing")()
