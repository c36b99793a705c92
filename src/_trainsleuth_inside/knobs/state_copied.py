"""Knob `state-copied`: the state dict that the named lines ask for holds copies.

Changes        what `state_dict()` hands out there: copies of the weights, which training does not change
Mechanism      a kept state that still is the live weights
Not applicable when no named line asks for a state dict
"""

from __future__ import annotations

import functools
from typing import Any, Sequence

from _trainsleuth_inside.knobs.acting import called_from, lines, says


def turn(watch: Any, at: Sequence[Any] = ()) -> None:
    base, wanted, acted = watch.torch.nn.Module, lines(at), says(watch, "state-copied")
    kept = base.state_dict

    @functools.wraps(kept)
    def state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = kept(self, *args, **kwargs)
        if args or "destination" in kwargs or called_from(wanted) is None:
            return result
        acted()
        for name, value in result.items():
            if isinstance(value, watch.torch.Tensor):
                result[name] = value.detach().clone()
        return result

    base.state_dict = state_dict
