"""Delta debugging: the smallest set of things that is enough, found by trials."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

Said = TypeVar("Said")
Decide = Callable[[Sequence[str]], Generator[Said, None, bool]]


def leave_out(names: Sequence[str], decide: Decide[Said]) -> Generator[Said, None, list[str]]:
    """Of names that are enough together, as few as are still enough: each is left out once, and put back if it is needed."""
    needed = list(names)
    for name in names:
        fewer = [other for other in needed if other != name]
        if fewer and (yield from decide(fewer)):
            needed = fewer
    return needed


def first_enough(ranked: Sequence[str], decide: Decide[Said]) -> Generator[Said, None, list[str]]:
    """The most suspicious one, two, four … of them, until they are enough; then what is not needed goes. Empty if all are not enough."""
    count = 1
    while True:
        chosen = list(ranked[:count])
        if (yield from decide(chosen)):
            return (yield from leave_out(chosen[::-1], decide))[::-1] if count > 1 else chosen
        if count >= len(ranked):
            return []
        count = min(2 * count, len(ranked))
