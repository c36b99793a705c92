"""Knob `dropout-off`: nothing is dropped.

Changes        Dropout modules and functions return their input
Mechanism      share of the activations that is dropped in training
Not applicable when nothing is dropped
"""

from __future__ import annotations

from typing import Any, Callable

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    functional = watch.torch.nn.functional
    acted = says(watch, "dropout-off")

    def none_of(original: Callable[..., Any]) -> Callable[..., Any]:
        def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
            if training and p > 0:
                acted(p=p)
            return original(input, p, False, inplace)

        return dropout

    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):
        setattr(functional, name, none_of(getattr(functional, name)))
