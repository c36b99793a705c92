"""Knob `softmax-dropped`: a loss that wants logits gets logits, not probabilities.

Changes        `cross_entropy` and `nll_loss` get the logarithm of what a softmax has made, `binary_cross_entropy_with_logits` the logit of what
               a sigmoid has
Mechanism      whether the last operation before the loss is a softmax or a sigmoid, or rows that lie between 0 and 1 and sum to 1
Not applicable when it is not
"""

from __future__ import annotations

from typing import Any, Tuple

from _trainsleuth_inside.knobs.acting import around_losses, says

MAKERS = {"cross_entropy": "Softmax", "nll_loss": "Softmax", "binary_cross_entropy_with_logits": "Sigmoid"}
OF_CLASSES = ("cross_entropy", "nll_loss")
SHAPE_ONLY = ("View", "Reshape", "Unsafe", "Squeeze", "Unsqueeze", "Permute", "Transpose", "Select", "Slice", "ToCopy", "Clone")


def turn(watch: Any) -> None:
    acted = says(watch, "softmax-dropped")

    def prepare(name: str, input: Any, target: Any) -> Tuple[Any, Any]:
        if not _maker(input).startswith(MAKERS[name]) and not (name in OF_CLASSES and _are_probabilities(input)):
            return input, target
        acted(function=name)
        tiny = 1e-6
        if name in OF_CLASSES:
            return input.clamp_min(tiny).log(), target
        return input.clamp(tiny, 1 - tiny).logit(), target

    around_losses(watch, list(MAKERS), prepare)


def _are_probabilities(tensor: Any) -> bool:
    if tensor.dim() < 2 or tensor.shape[1] < 2 or not tensor.numel():
        return False
    sums = tensor.detach().float().sum(1)
    return bool((tensor >= 0).all()) and bool(((sums - 1).abs() < 1e-3).all())


def _maker(tensor: Any) -> str:
    """The operation that made a tensor, without those that only change its shape."""
    node: Any = getattr(tensor, "grad_fn", None)
    for _ in range(6):
        name = "" if node is None else node.name().split("::")[-1]
        if not name.startswith(SHAPE_ONLY):
            return name
        following = [branch for branch, _ in node.next_functions if branch is not None]
        node = following[0] if len(following) == 1 else None
    return ""
