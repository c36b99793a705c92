"""Which tensors of a state dict a module knows, and under which other prefix it would know the rest."""

from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Sequence, Tuple

NOTHING = ("", "")


class Names(NamedTuple):
    matched: int
    missing: Sequence[str]
    unexpected: Sequence[str]
    removes: str  # the prefix without which names fit
    adds: str  # or the one with which they fit
    fits: int  # so many then


def compare(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> Names:
    """Both by name, of tensors; a name fits another only where the shapes are the same."""
    missing = [name for name in wanted if name not in given]
    unexpected = [name for name in given if name not in wanted]
    counts: Dict[Tuple[str, str], int] = {}
    for longer, shorter, removes in ((unexpected, set(missing), True), (missing, set(unexpected), False)):
        for name in longer:
            for rest in _ends(name):
                one, other = (given.get(name), wanted.get(rest)) if removes else (given.get(rest), wanted.get(name))
                if rest in shorter and getattr(one, "shape", None) == getattr(other, "shape", 0):
                    prefix = name[: -len(rest)]
                    key = (prefix, "") if removes else ("", prefix)
                    counts[key] = counts.get(key, 0) + 1
    best = max(counts, key=lambda key: counts[key], default=NOTHING)
    return Names(len(given) - len(unexpected), missing, unexpected, *best, counts.get(best, 0))


def _ends(name: str) -> Sequence[str]:
    """`b.c` and `c` of `a.b.c`."""
    parts = name.split(".")
    return [".".join(parts[first:]) for first in range(1, len(parts))]
