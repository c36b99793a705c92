"""Knob `mask-inverted`: padding masks of attention keep what they hid, and hide what they kept.

Changes        boolean padding masks that torch's own attention and transformer encoders are given
Mechanism      masks that keep the padding only
Not applicable when no such module is given a boolean padding mask
"""

from __future__ import annotations

import functools
from typing import Any, Sequence

from _trainsleuth_inside.knobs.acting import called_from, lines, says
from _trainsleuth_inside.masked_samples import NAMES, POSITIONS


def turn(watch: Any, at: Sequence[Any] = ()) -> None:
    torch, wanted, acted = watch.torch, lines(at), says(watch, "mask-inverted")
    inside = {"now": False}

    def other_way(mask: Any) -> Any:
        if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool:
            return mask
        acted()
        hidden = ~mask
        return hidden & ~hidden.all(-1, keepdim=True)  # a sample of which nothing is left has no answer

    def turned(original: Any, position: int) -> Any:
        @functools.wraps(original)
        def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
            if inside["now"] or called_from(wanted) is None:
                return original(self, *args, **kwargs)
            inside["now"] = True
            try:
                args = tuple(other_way(value) if index == position else value for index, value in enumerate(args))
                kwargs = {name: other_way(value) if name in NAMES else value for name, value in kwargs.items()}
                return original(self, *args, **kwargs)
            finally:
                inside["now"] = False

        return forward

    for name, position in POSITIONS.items():
        kind = getattr(torch.nn, name)
        kind.forward = turned(kind.forward, position)
