"""Knob `same-shape-loss`: predictions and targets of equally many numbers are compared one by one.

Changes        the target takes the shape of the prediction before a loss function; in a difference of two tensors on a line that the
               finding names, the one with more axes takes the shape of the other
Mechanism      differences per sample
Not applicable when the shapes agree, or the numbers of elements do not
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence, Tuple

from _trainsleuth_inside.knobs.acting import around_losses, called_from, lines, says

LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits")


def turn(watch: Any, at: Sequence[Sequence[Any]] = ()) -> None:
    torch = watch.torch
    acted = says(watch, "same-shape-loss")
    wanted = lines(at)

    def blown_up(one: Any, other: Any) -> bool:
        if not isinstance(other, torch.Tensor) or one.shape == other.shape or one.numel() != other.numel():
            return False
        both = torch.broadcast_shapes(one.shape, other.shape)
        return both not in (one.shape, other.shape)

    def prepare(name: str, input: Any, target: Any) -> Tuple[Any, Any]:
        if blown_up(input, target):
            acted(function=name)
            return input, target.reshape(input.shape)
        return input, target

    def aligned(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def difference(self: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(other, torch.Tensor) and self.dim() != other.dim() and called_from(wanted, 2) is not None and blown_up(self, other):
                acted(function="-")
                if self.dim() > other.dim():  # what comes after (a weight a sample) goes with the plain one
                    return original(self.reshape(other.shape), other, *args, **kwargs)
                other = other.reshape(self.shape)
            return original(self, other, *args, **kwargs)

        return difference

    around_losses(watch, LOSSES, prepare)
    if wanted:
        torch.Tensor.__sub__ = aligned(torch.Tensor.__sub__)
        torch.Tensor.sub = aligned(torch.Tensor.sub)
