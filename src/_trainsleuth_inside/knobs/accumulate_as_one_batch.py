"""Knob `accumulate-as-one-batch`: the gradients that a step uses are those of one large batch.

Changes        before a step, gradients that several backwards have added up are divided by their number, unless the losses were divided
               already (the program's own division is taken from the first window: it shows in the value that is back-propagated)
Mechanism      size of the accumulated gradient against that of one backward
Not applicable when each step follows a single backward
"""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.knobs.acting import before_each_step, says


def turn(watch: Any) -> None:
    acted = says(watch, "accumulate-as-one-batch")

    def divide(optimizer: Any) -> None:
        record = watch.record_of(optimizer)
        backwards = 0 if record is None else len(record.pending)
        if backwards < 2:
            return
        acted(backwards=backwards)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad.div_(backwards)

    before_each_step(watch, divide)
