"""Knob `unfreeze`: the lines that the finding names no longer freeze anything.

Changes        `requires_grad` of the parameters that those lines set to False; because they are trainable from the start, an
               optimizer that is built from the trainable parameters gets them too
Mechanism      share of the model's parameters that are trainable and move
Not applicable when no freezing comes from those lines (they are in a library, or the weights are made without gradient in C)
"""

from __future__ import annotations

import functools
from typing import Any, Sequence

from _trainsleuth_inside.knobs.acting import called_from, lines, says


def turn(watch: Any, at: Sequence[Sequence[Any]] = ()) -> None:
    torch = watch.torch
    parameter = torch.nn.Parameter
    wanted = lines(at)
    acted = says(watch, "unfreeze")
    attribute = torch._C.TensorBase.requires_grad
    watched = parameter.__dict__.get("requires_grad") or attribute
    method = parameter.requires_grad_
    make = parameter.__new__

    def get(this: Any) -> Any:
        return attribute.__get__(this)

    def put(this: Any, value: Any) -> None:
        place = None if value else called_from(wanted, 2)
        if place is None:
            watched.__set__(this, value)
        else:
            acted(at=place)

    @functools.wraps(method)
    def requires_grad_(this: Any, requires_grad: bool = True) -> Any:
        place = None if requires_grad else called_from(wanted, 2)
        if place is None:
            return method(this, requires_grad)
        acted(at=place)
        return this

    def __new__(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        made = make(cls, data, requires_grad)
        if not requires_grad and (made.is_floating_point() or made.is_complex()):
            place = called_from(wanted, 2)
            if place is not None:
                attribute.__set__(made, True)
                acted(at=place)
        return made

    def stand(*_: Any) -> None:
        """The probe of freezing takes its own patch away after the first backward, and with it ours."""
        if not watch.compiled:
            parameter.requires_grad = property(get, put)
            parameter.requires_grad_ = requires_grad_

    parameter.__new__ = staticmethod(__new__)
    stand()
    watch.when_backward_ended.append(stand)
