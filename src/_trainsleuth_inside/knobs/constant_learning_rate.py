"""Knob `constant-learning-rate`: each step uses the learning rate that the schedule starts from or leads to, never less.

Changes        `lr` of each group before a step: the largest of what it was built with, `initial_lr` and the present one; where all of these
               are zero, a usual rate of that kind of optimizer
Mechanism      learning rate of every step
Not applicable when the learning rate is that large in every step
"""

from __future__ import annotations

from typing import Any, Dict

from _trainsleuth_inside.knobs.acting import before_each_step, says

USUAL = {"SGD": 0.05, "Adagrad": 0.01, "Adadelta": 1.0, "LBFGS": 1.0, "Rprop": 0.01}


def turn(watch: Any) -> None:
    acted = says(watch, "constant-learning-rate")
    largest: Dict[int, float] = {}

    def hold(optimizer: Any) -> None:
        for group in optimizer.param_groups:
            rate = group.get("lr")
            if rate is None:
                continue
            built = float(optimizer.defaults.get("lr") or 0.0) if len(optimizer.param_groups) == 1 else 0.0
            known = max(largest.get(id(group), 0.0), float(rate), float(group.get("initial_lr") or 0.0), built)
            largest[id(group)] = known or USUAL.get(type(optimizer).__name__, 1e-3)
            if float(rate) < 0.999 * largest[id(group)]:
                acted(before=float(rate), rate=largest[id(group)])
                group["lr"] = largest[id(group)]

    before_each_step(watch, hold)
