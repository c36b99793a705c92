"""Knob `inputs-turned-round`: each sample gets the input of another one, while its target stays.

Changes        the order of the samples in the tensors that a model is called with, in training
Mechanism      the dependence of the output on the input: if the losses stay the same to the last digits, there is none
Not applicable when a model is called with a single sample
"""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.knobs.acting import only_in_models, says


def turn(watch: Any) -> None:
    torch = watch.torch
    acted = says(watch, "inputs-turned-round")

    def turned(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dim() < 2 or value.shape[0] < 2:
            return value
        acted()
        return value.flip(0)

    def around(model: Any, call: Any, args: Any, kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return call(model, *args, **kwargs)
        return call(model, *map(turned, args), **{name: turned(value) for name, value in kwargs.items()})

    only_in_models(watch, around)
