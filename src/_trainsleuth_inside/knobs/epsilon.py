"""Knob `epsilon`: an optimizer's epsilon is large enough for the type of its weights.

Changes        before each step `eps` of groups with weights of 16 bit is at least 1e-4
Mechanism      an epsilon that is zero in the type that it is added in
Not applicable when no optimizer with an epsilon has weights of 16 bit
"""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.knobs.acting import before_each_step, says

LEAST = 1e-4


def turn(watch: Any) -> None:
    acted = says(watch, "epsilon")

    def enlarge(optimizer: Any) -> None:
        for group in optimizer.param_groups:
            if group.get("eps", LEAST) < LEAST and any(parameter.element_size() < 4 for parameter in group["params"]):
                acted(eps=group["eps"])
                group["eps"] = LEAST

    before_each_step(watch, enlarge)
