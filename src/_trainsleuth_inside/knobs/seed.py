"""Knob `seed`, a placebo: every seed of the program is another one, whether or not the program sets any.

Changes        `torch.manual_seed`, `random.seed`, `numpy.random.seed`, `numpy.random.default_rng`, torch's seed at the start, and the seeds that
               generators of the program's own are given (`torch.Generator`, `random.Random`, `numpy.random.RandomState`)
Mechanism      none
Not applicable when never
"""

from __future__ import annotations

import functools
import random
from typing import Any, Callable

from _trainsleuth_inside import import_hooks
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.knobs.acting import says

WIDTH = 2**32


def turn(watch: Any, offset: int = 1000) -> None:
    torch = watch.torch

    def shifted(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original, [name for name in functools.WRAPPER_ASSIGNMENTS if hasattr(original, name)])
        def seed(*args: Any, **kwargs: Any) -> Any:
            if args and isinstance(args[0], int) and not isinstance(args[0], bool):
                args = ((args[0] + offset) % WIDTH, *args[1:])
            elif isinstance(kwargs.get("seed"), int):
                kwargs["seed"] = (kwargs["seed"] + offset) % WIDTH
            return original(*args, **kwargs)

        return seed

    def for_numpy(numpy: Any) -> None:
        numpy.random.seed = shifted(numpy.random.seed)
        numpy.random.default_rng = shifted(numpy.random.default_rng)
        numpy.random.RandomState = _also_its_own(numpy.random.RandomState, "__init__", shifted_method)

    def shifted_method(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def seed(self: Any, *args: Any, **kwargs: Any) -> Any:
            return shifted(functools.partial(original, self))(*args, **kwargs)

        return seed

    torch.manual_seed(torch.initial_seed() % WIDTH + offset)
    torch.manual_seed = torch.random.manual_seed = shifted(torch.manual_seed)
    random.seed = shifted(random.seed)
    torch.Generator = _also_its_own(torch.Generator, "manual_seed", shifted_method)
    setattr(random, "Random", _also_its_own(random.Random, "seed", shifted_method))
    import_hooks.after_import("numpy", Probe("seed", watch.facts).guard(for_numpy))
    says(watch, "seed")(offset=offset)


def _also_its_own(kind: Any, method: str, shifted: Callable[[Any], Any]) -> Any:
    """The same class, whose method is given other seeds; what was made before is an instance of it all the same."""

    class OfBoth(type(kind)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, kind)

    return OfBoth(kind.__name__, (kind,), {method: shifted(getattr(kind, method)), "__module__": kind.__module__})
