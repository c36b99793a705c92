"""Small words for findings: counts, names and numbers as a person would write them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from trainsleuth.case.entries import Parameter


def count(things: Sequence[object] | int, noun: str) -> str:
    number = things if isinstance(things, int) else len(things)
    return f"{number:,} {noun}" + ("" if number == 1 else "es" if noun.endswith(("s", "x", "ch")) else "s")


def names(parameters: Iterable[Parameter], most: int = 4) -> str:
    """The first few names, and how many more there are."""
    listed = [parameter.name for parameter in parameters]
    shown = ", ".join(listed[:most])
    return shown if len(listed) <= most else f"{shown} and {len(listed) - most} more"


def number(value: float) -> str:
    """A number with the digits that matter."""
    if value is None or math.isnan(value):
        return "NaN"
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e4:
        return f"{value:.4g}" if abs(value) < 100 else f"{value:.1f}".removesuffix(".0")
    return f"{value:.2g}"


def loss(value: float) -> str:
    """A loss: four digits behind the point, unless it is too small or too large for that."""
    return f"{value:.4f}" if value == 0 or 0.01 <= abs(value) < 1e5 else f"{value:.3g}"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.095 or share == 0 else f"{100 * share:.1f} %"


def elements(parameters: Iterable[Parameter]) -> int:
    return sum(parameter.count for parameter in parameters)
