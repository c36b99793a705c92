"""Knob `graph-kept`: the lines that the finding names no longer cut the graph.

Changes        `.detach()`, `.data`, `no_grad` and `inference_mode` in those lines, also as a decorator of a function there; what rounds passes
               its gradient straight through
Mechanism      layers that run in training and get no gradient
Not applicable when the cut is a conversion (`.item()`, `.numpy()`, `argmax`, `torch.tensor(…)`), which has no gradient to keep
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Sequence

from _trainsleuth_inside.deep import FLAT
from _trainsleuth_inside.knobs.acting import called_from, holds_line, lines, says


def turn(watch: Any, at: Sequence[Sequence[Any]] = ()) -> None:
    torch = watch.torch
    wanted = lines(at)
    if not wanted:  # most detaching is meant
        return
    acted = says(watch, "graph-kept")
    attribute = torch._C.TensorBase.data
    detach = torch.Tensor.detach

    @functools.wraps(detach)
    def kept(self: Any) -> Any:
        place = called_from(wanted, 2) if self.requires_grad else None
        if place is None:
            return detach(self)
        acted(at=place)
        return self

    def data(self: Any) -> Any:
        place = called_from(wanted, 2) if self.requires_grad and not self.is_leaf else None
        if place is None:
            return attribute.__get__(self)
        acted(at=place)
        return self

    torch.Tensor.detach = kept
    torch.Tensor.data = property(data, attribute.__set__)
    for name in FLAT:
        for owner in (torch, torch.Tensor):
            setattr(owner, name, _straight_through(getattr(owner, name), detach, wanted, acted))
    for region in (torch.no_grad, torch.inference_mode):
        _leave_on(torch, region, lambda place: acted(at=place), wanted)


def _straight_through(original: Callable[..., Any], detach: Callable[..., Any], wanted: Any, acted: Callable[..., None]) -> Callable[..., Any]:
    @functools.wraps(original)
    def rounded(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(tensor, *args, **kwargs)
        place = called_from(wanted, 2) if getattr(tensor, "requires_grad", False) else None
        if place is None:
            return result
        acted(at=place)
        return tensor + detach(result - tensor)

    return rounded


def _leave_on(torch: Any, region: Any, acted: Callable[[Any], None], wanted: Any) -> None:
    """A region entered from a named line, or around a function that a named line calls or is part of, changes nothing."""
    enter, leave, wrap = region.__enter__, region.__exit__, region.__call__

    def __enter__(self: Any) -> Any:
        frame = sys._getframe(1)
        place = None if "contextlib" in frame.f_code.co_filename else called_from(wanted, 2)
        if place is None:
            return enter(self)
        acted(place)
        self._left_on = True
        return None

    def __exit__(self: Any, *problem: Any) -> None:
        if self.__dict__.pop("_left_on", False):
            return None
        leave(self, *problem)
        return None

    def __call__(self: Any, function: Any) -> Any:
        wrapped = wrap(self, function)
        code = getattr(function, "__code__", None)
        if code is None:
            return wrapped
        own = holds_line(code, wanted)

        @functools.wraps(function)
        def chosen(*args: Any, **kwargs: Any) -> Any:
            place = own or (called_from(wanted, 2) if torch.is_grad_enabled() else None)
            if not place:
                return wrapped(*args, **kwargs)
            acted(place)
            return function(*args, **kwargs)

        return chosen

    region.__enter__, region.__exit__, region.__call__ = __enter__, __exit__, __call__
