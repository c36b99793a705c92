"""Counts the steps of an optimizer while nobody looks, and touches as little memory as can be.

A training step leaves nothing of ours in the processor's caches: a dozen lookups, which take half a microsecond in a tight loop, take
five in a program. So the hook of a resting run goes through its own few cells and calls nobody until a granted number of
steps is used up.
"""

from __future__ import annotations

from typing import Any, Callable

NOTHING: Callable[..., None] = getattr(0, "__init__")  # noqa: B009 (takes any arguments, returns None, and is no Python code)


class Tally:
    """`hook` stands where torch calls a hook after each step; what is not granted goes to `counted`."""

    hook: Callable[[Any, Any, Any], None]
    grant: Callable[[int, int], None]
    take: Callable[[], int]

    def __init__(self, counted: Callable[[Any], None]) -> None:
        key = granted = left = 0

        def hook(optimizer: Any, args: Any, kwargs: Any, identity: Callable[[Any], int] = id) -> None:
            nonlocal left
            if left and identity(optimizer) == key:
                left -= 1
            else:
                counted(optimizer)

        def grant(optimizer: int, steps: int) -> None:
            """So many steps of the optimizer with this id are counted here; what was counted before has been taken."""
            nonlocal key, granted, left
            key, granted, left = optimizer, steps, steps

        def take() -> int:
            """The steps that were counted since it was last asked."""
            nonlocal granted
            passed, granted = granted - left, left
            return passed

        self.hook, self.grant, self.take = hook, grant, take
