"""Knob `bad-labels-dropped`: labels that the loss cannot use are left out.

Changes        class labels outside of the model's outputs become `ignore_index`; targets of a binary loss are brought between 0 and 1 by their
               least and their largest value
Mechanism      labels that do not exist
Not applicable when every label is usable
"""

from __future__ import annotations

from typing import Any, Tuple

from _trainsleuth_inside.knobs.acting import around_losses, says

IGNORED = -100


def turn(watch: Any) -> None:
    acted = says(watch, "bad-labels-dropped")

    def prepare(name: str, input: Any, target: Any) -> Tuple[Any, Any]:
        if name.startswith("binary"):
            least, most = (float(target.min()), float(target.max())) if target.numel() else (0.0, 1.0)
            if least >= 0 and most <= 1:
                return input, target
            acted(least=least, most=most)
            return input, (target - min(least, 0.0)) / (max(most, 1.0) - min(least, 0.0))
        if target.is_floating_point():
            return input, target
        bad = ((target < 0) & (target != IGNORED)) | (target >= input.shape[min(1, input.dim() - 1)])
        if not bool(bad.any()):
            return input, target
        acted(labels=int(bad.sum()))
        return input, target.masked_fill(bad, IGNORED)

    around_losses(watch, ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"), prepare)
