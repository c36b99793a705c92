"""Knob `normalise-inputs`: what a model is called with has mean 0 and spread 1.

Changes        floating-point inputs of a model: shifted and scaled by the mean and spread of the first batch, column by column where there
               are columns, as a whole otherwise
Mechanism      size of what the first layer receives
Not applicable when the inputs have that size already, or are no floating-point numbers
"""

from __future__ import annotations

from typing import Any, Dict, Tuple

from _trainsleuth_inside.knobs.acting import only_in_models, says


def turn(watch: Any) -> None:
    torch = watch.torch
    acted = says(watch, "normalise-inputs")
    known: Dict[Tuple[int, int], Tuple[Any, Any]] = {}

    def normal(value: Any, key: Tuple[int, int]) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point() or value.numel() < 2:
            return value
        if key not in known:
            columns = 0 if value.dim() == 2 and value.shape[0] > 8 else None
            first = value.detach()
            mean, spread = (first.mean(columns), first.std(columns)) if columns is not None else (first.mean(), first.std())
            known[key] = mean, spread.clamp_min(1e-6)
        mean, spread = known[key]
        if float(mean.abs().max()) < 3 and 0.2 < float(spread.max()) < 3:
            return value
        acted(mean=float(mean.abs().max()), spread=float(spread.max()))
        return (value - mean) / spread

    def around(model: Any, call: Any, args: Any, kwargs: Any) -> Any:
        return call(model, *(normal(value, (id(model), n)) for n, value in enumerate(args)), **kwargs)

    only_in_models(watch, around)
