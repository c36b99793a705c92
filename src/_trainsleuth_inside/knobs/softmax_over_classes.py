"""Knob `softmax-over-classes`: a softmax over the batch, or over an axis of one element, runs over another axis instead.

Changes        `softmax` and `log_softmax` of a table of samples and classes that name axis 0: they run over the last axis. Those over an
               axis of one element run over the only other axis, beside the batch, that is longer. Those at a named line run over the axis
               that the finding knows to be that of the classes
Mechanism      over which axis the probabilities sum to one
Not applicable when no softmax runs over axis 0 of such a table or over one element, or more than one axis could be meant
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional, Sequence

from _trainsleuth_inside.knobs.acting import called_from, lines, says


def turn(watch: Any, at: Sequence[Any] = (), axis: Optional[int] = None) -> None:
    torch = watch.torch
    wanted, classes = lines(at), axis
    acted = says(watch, "softmax-over-classes")

    def turned(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def softmax(input: Any, *args: Any, **kwargs: Any) -> Any:
            axis = kwargs.get("dim", args[0] if args else None)
            meant = classes if classes is not None and called_from(wanted) is not None else _meant(input, axis)
            if meant is not None:
                acted()
                if "dim" in kwargs:
                    kwargs["dim"] = meant
                else:
                    args = (meant, *args[1:])
            return original(input, *args, **kwargs)

        return softmax

    for owner in (torch, torch.nn.functional, torch.Tensor):
        for name in ("softmax", "log_softmax"):
            setattr(owner, name, turned(getattr(owner, name)))


def _meant(input: Any, axis: Any) -> Optional[int]:
    if axis in (0, -2) and input.dim() == 2 and input.shape[0] > 1:
        return -1
    return only_longer_axis(input.shape) if isinstance(axis, int) and input.dim() and input.shape[axis] == 1 else None


def only_longer_axis(shape: Sequence[int]) -> Optional[int]:
    """The axis, beside the batch, that has more than one element; None if there are several, or none."""
    longer = [axis for axis in range(1, len(shape)) if shape[axis] > 1]
    return longer[0] if len(longer) == 1 else None
