"""Knob `step-every-window`: after each backward the optimizers that got gradients make a step.

Changes        `optimizer.step()` and `optimizer.zero_grad()` right after a backward, for optimizers that nobody else steps
Mechanism      steps per backward
Not applicable when the program steps its optimizers itself, or there is none
"""

from __future__ import annotations

from typing import Any, Set

from _trainsleuth_inside.knobs.acting import before_each_step, says


def turn(watch: Any) -> None:
    acted = says(watch, "step-every-window")
    stepped_by_the_program: Set[int] = set()
    state = {"ours": False}

    def note(optimizer: Any) -> None:
        if not state["ours"]:
            stepped_by_the_program.add(id(optimizer))

    def step(*_: Any) -> None:
        if state["ours"]:
            return
        for record in watch.live_records():
            optimizer = record.optimizer()
            if optimizer is None or id(optimizer) in stepped_by_the_program or not record.pending:
                continue
            state["ours"] = True
            try:
                acted(optimizer=type(optimizer).__name__)
                optimizer.step()
                optimizer.zero_grad()
            finally:
                state["ours"] = False

    before_each_step(watch, note)
    watch.when_backward_ended.append(step)
