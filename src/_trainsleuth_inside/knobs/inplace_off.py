"""Knob `inplace-off`: activations and dropout do not overwrite their input.

Changes        modules with `inplace=True`, and the functions of `torch.nn.functional` that are called with it; `x.relu_()` stays
Mechanism      modules and calls that work in place
Not applicable when nothing works in place
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    functional = watch.torch.nn.functional
    acted = says(watch, "inplace-off")

    def fresh(original: Callable[..., Any], position: int) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if len(args) > position and args[position]:
                args = (*args[:position], False, *args[position + 1 :])
                acted(function=original.__name__)
            elif kwargs.get("inplace"):
                kwargs["inplace"] = False
                acted(function=original.__name__)
            return original(*args, **kwargs)

        return call

    for name, function in list(vars(functional).items()):
        if inspect.isfunction(function) and not name.startswith("_"):
            parameters = list(inspect.signature(function).parameters)
            if "inplace" in parameters:
                setattr(functional, name, fresh(function, parameters.index("inplace")))
