"""Records the autograd Functions that the program defines itself: their backward is a claim that can be checked."""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.places import USER, beginning_of, kind_of
from _trainsleuth_inside.watch import Watch


def install(watch: Watch, probe: Probe) -> None:
    base = watch.torch.autograd.Function
    original = base.__init_subclass__

    @probe.guard
    def defined(kind: Any) -> None:
        code = getattr(kind.__dict__.get("backward"), "__code__", None) or getattr(
            getattr(kind.__dict__.get("backward"), "__func__", None), "__code__", None
        )
        if code is not None and kind_of(code.co_filename) == USER:
            at = beginning_of(code)
            watch.facts.once(("function", at), "function", name=kind.__name__, backward=at)

    def __init_subclass__(kind: Any, /, **options: Any) -> None:
        original(**options)
        defined(kind)

    base.__init_subclass__ = classmethod(__init_subclass__)
