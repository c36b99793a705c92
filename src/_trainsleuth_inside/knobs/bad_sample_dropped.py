"""Knob `bad-sample-dropped`: numbers that are not finite do not enter the model.

Changes        NaN and Inf in the tensors that a model is called with, and in targets, become zero
Mechanism      inputs that are not finite
Not applicable when every input is finite
"""

from __future__ import annotations

from typing import Any, Tuple

from _trainsleuth_inside.knobs.acting import around_losses, only_in_models, says

LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits")


def turn(watch: Any) -> None:
    torch = watch.torch
    acted = says(watch, "bad-sample-dropped")

    def cleaned(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or not value.is_floating_point() or bool(torch.isfinite(value.detach()).all()):
            return value
        acted(windows_before=watch.windows)
        return torch.nan_to_num(value, 0.0, 0.0, 0.0)

    def around(model: Any, call: Any, args: Any, kwargs: Any) -> Any:
        return call(model, *map(cleaned, args), **{name: cleaned(value) for name, value in kwargs.items()})

    def prepare(name: str, input: Any, target: Any) -> Tuple[Any, Any]:
        return input, cleaned(target)

    only_in_models(watch, around)
    around_losses(watch, LOSSES, prepare)
