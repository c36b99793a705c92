"""Records calls of `functional.dropout` that drop though the model is in eval mode: its `training` is True unless it is told the module's.

The functions are watched during the first few forwards without gradients of a model in eval mode, and are torch's own otherwise. A call
that says `training=True` itself (Monte Carlo dropout) means it.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from _trainsleuth_inside import places
from _trainsleuth_inside.standing import stands_for

FUNCTIONS = ("dropout", "dropout1d", "dropout2d", "dropout3d")
TOLD = "is_told_the_mode"  # an attribute of functions that a knob has put there
FORWARDS = 3  # of each model


class Dropping:
    def __init__(self, torch: Any, told: Callable[[Optional[places.Place], float], None]) -> None:
        self._functional = torch.nn.functional
        self._told = told
        self._forwards: Dict[int, int] = {}
        self._own: List[Tuple[str, Any]] = []

    def begin(self, module: Any) -> bool:
        """Before a forward without gradients in eval mode; whether `end` must be called behind it."""
        seen = self._forwards.get(id(module), 0)
        if seen >= FORWARDS or self._own:
            return False
        self._forwards[id(module)] = seen + 1
        for name in FUNCTIONS:
            original = getattr(self._functional, name)
            if getattr(original, TOLD, False):
                continue
            self._own.append((name, original))
            setattr(self._functional, name, self._noting(original))
        return True

    def end(self) -> None:
        while self._own:
            setattr(self._functional, *self._own.pop())

    def _noting(self, original: Any) -> Any:
        told = self._told

        @stands_for(original)
        def dropout(input: Any, p: float = 0.5, *args: Any, **kwargs: Any) -> Any:
            if p > 0 and not args and "training" not in kwargs:
                told(places.caller(), p)
            return original(input, p, *args, **kwargs)

        return dropout
