"""Knob `next-token`: each answer of a language model is compared with the token that comes next.

Changes        integer targets of `cross_entropy` and `nll_loss` that are two ahead of the tokens looked up, or the tokens themselves, or one behind
Mechanism      the distance between tokens and targets
Not applicable when the targets are no tokens of the input, or the next ones already
"""

from __future__ import annotations

import functools
from typing import Any, List, Tuple

from _trainsleuth_inside.knobs.acting import around_losses, says
from _trainsleuth_inside.tokens import AHEAD, begins_later, is_tokens, next_tokens

IGNORED = -100


def turn(watch: Any) -> None:
    torch = watch.torch
    acted = says(watch, "next-token")
    embedding = torch.embedding
    looked_up: List[Any] = []

    @functools.wraps(embedding)
    def remembering(weight: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
        if is_tokens(torch, indices):
            looked_up.append(indices.detach())
            del looked_up[:-8]
        return embedding(weight, indices, *args, **kwargs)

    torch.embedding = remembering

    def prepare(name: str, input: Any, target: Any) -> Tuple[Any, Any]:
        if target.is_floating_point() or not looked_up or begins_later(input, looked_up) or next_tokens(target, looked_up, IGNORED, 1) is not None:
            return input, target
        for ahead in AHEAD:
            moved = next_tokens(target, looked_up, IGNORED, ahead) if ahead != 1 else None
            if moved is not None:
                acted()
                looked_up.clear()
                return input, moved
        return input, target

    around_losses(watch, ("cross_entropy", "nll_loss"), prepare)
