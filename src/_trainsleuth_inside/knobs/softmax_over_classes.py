"""Knob `softmax-over-classes`: a softmax over the batch runs over the last axis instead.

Changes        `softmax` and `log_softmax` of a table of samples and classes that name axis 0, in the user's own lines
Mechanism      over which axis the probabilities sum to one
Not applicable when no softmax runs over axis 0 of such a table
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any, at: Sequence[Any] = ()) -> None:
    torch = watch.torch
    acted = says(watch, "softmax-over-classes")

    def turned(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def softmax(input: Any, *args: Any, **kwargs: Any) -> Any:
            axis = kwargs.get("dim", args[0] if args else None)
            if axis in (0, -2) and input.dim() == 2:
                acted()
                if "dim" in kwargs:
                    kwargs["dim"] = -1
                else:
                    args = (-1, *args[1:])
            return original(input, *args, **kwargs)

        return softmax

    for owner in (torch, torch.nn.functional, torch.Tensor):
        for name in ("softmax", "log_softmax"):
            setattr(owner, name, turned(getattr(owner, name)))
