"""Knob `overfit-one-batch`: every training step sees the first batch again.

Changes        each DataLoader gives its first batch again and again; where a program has none, the tensors that a model is called with and
               the targets of the loss are those of the first training call, where the shapes agree
Mechanism      the pairing of inputs and targets, which no longer matters: what stays the same can be learnt by heart
Not applicable when there is no DataLoader, and the loss function is none that we know, or the shapes differ from step to step
"""

from __future__ import annotations

import copy
from typing import Any, Dict, Tuple

from _trainsleuth_inside.knobs.acting import LOSSES, around_losses, only_in_models, says


def turn(watch: Any) -> None:
    torch = watch.torch
    acted = says(watch, "overfit-one-batch")
    first: Dict[Any, Any] = {}

    def again(value: Any, key: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.requires_grad:
            return value
        known = first.setdefault(key, value.detach().clone())
        if known.shape != value.shape or known.dtype != value.dtype:
            return value
        return known

    def around(model: Any, call: Any, args: Any, kwargs: Any) -> Any:
        if not torch.is_grad_enabled() or not any(True for _ in model.parameters()):
            return call(model, *args, **kwargs)
        args = tuple(again(value, (id(model), n)) for n, value in enumerate(args))
        return call(model, *args, **{name: again(value, (id(model), name)) for name, value in kwargs.items()})

    def prepare(name: str, input: Any, target: Any) -> Tuple[Any, Any]:
        if not torch.is_grad_enabled() or not input.requires_grad:
            return input, target
        acted(function=name)
        return input, again(target, (name, tuple(input.shape)))

    only_in_models(watch, around)
    around_losses(watch, LOSSES, prepare)
    _loaders_repeat(watch, acted)


def _loaders_repeat(watch: Any, acted: Any) -> None:
    """The first batch of each loader, as a copy, in the place of all that follow."""
    base = watch.torch.utils.data.dataloader._BaseDataLoaderIter
    following = base.__next__
    first: Dict[int, Any] = {}

    def __next__(self: Any) -> Any:
        batch = following(self)
        known = first.setdefault(id(self._index_sampler), (self._index_sampler, copy.deepcopy(batch)))
        acted(loader=type(self._dataset).__name__)
        return copy.deepcopy(known[1])

    base.__next__ = __next__
