"""Knob `optimizer-owns-all`: parameters that get a gradient and have no owner are given to an optimizer.

Changes        the first parameter group of the optimizer that holds most of the model, or else of the first one: it grows by the
               orphans, so they have its settings, and schedulers see as many groups as before
Mechanism      whether the orphans move
Not applicable when every parameter with a gradient has an owner, or there is no optimizer
"""

from __future__ import annotations

from typing import Any, Dict, List

from _trainsleuth_inside.knobs.acting import says

EACH_BACKWARD_UNTIL = 64


def turn(watch: Any) -> None:
    acted = says(watch, "optimizer-owns-all")

    def adopt(*_: Any) -> None:
        if watch.backwards > EACH_BACKWARD_UNTIL and watch.backwards % 16:
            return
        owned = {id(parameter) for parameter in watch.owned_parameters()}
        orphans = [
            parameter for parameter in watch.model_parameters()
            if parameter.requires_grad and parameter.grad is not None and id(parameter) not in owned
        ]  # fmt: skip
        optimizer = _guardian(watch) if orphans else None
        if optimizer is None:
            return
        optimizer.param_groups[0]["params"].extend(orphans)
        if hasattr(optimizer, "_numel_cache"):  # LBFGS remembers how long its flat gradient is
            optimizer._numel_cache = None
        for parameter in orphans:
            watch.parameters.remember(parameter)
        acted(parameters=len(orphans), optimizer=type(optimizer).__name__)

    # first in line: the close of a window in the same backward (an optimizer in the backward) should find them owned
    watch.when_backward_ended.insert(0, adopt)


def _guardian(watch: Any) -> Any:
    """The living optimizer that holds most parameters of the called models that are trained now; of several alike the newest, because a
    program that trains in phases keeps the optimizer of an earlier one."""
    called: Dict[int, Any] = {id(parameter): parameter for parameter in watch.model_parameters() if parameter.requires_grad}
    held_weakly = [record.optimizer() for record in watch.live_records()]
    living: List[Any] = [optimizer for optimizer in held_weakly if optimizer is not None]

    def held(optimizer: Any) -> int:
        return sum(1 for group in optimizer.param_groups for parameter in group["params"] if id(parameter) in called)

    return max(reversed(living), key=held, default=None)
