"""How fast a run was, and what it waited for, from the times of its facts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainsleuth.case.reading import FactFollower

WARM_UP = 0.2  # share of the steps that is left out: first batch, first compile
FEWEST = 10


@dataclass(frozen=True)
class Speed:
    """None is what the case does not tell; `missing` says what that is."""

    steps_per_second: float | None
    loader_wait: float | None  # share of the time of training
    seconds: float | None
    missing: tuple[str, ...]


def speed_of(facts: Path, seconds: float | None) -> Speed:
    """Of the process that made the most steps."""
    best: tuple[int, list[tuple[float, int]], float | None] = (0, [], None)
    steps: dict[str, list[tuple[float, int]]] = {}
    passes: dict[str, list[tuple[float, float]]] = {}
    for process, fact in FactFollower(facts).news():
        try:
            if fact["k"] == "windows" and fact["to"]:
                steps.setdefault(f"{process} {fact['opt']}", []).append((float(fact["t"]), int(fact["to"])))
            elif fact["k"] == "loader_pass" and fact["windows"]:
                passes.setdefault(process, []).append((float(fact["t"]), float(fact["waited"])))
        except (KeyError, TypeError, ValueError):
            continue
    for name, rows in steps.items():
        if rows[-1][1] > best[0]:
            best = (rows[-1][1], rows, _wait(rows, passes.get(name.rpartition(" ")[0], [])))
    rate = _rate(best[1])
    missing = ["the time of forward, backward and step: the case keeps no times of phases"]
    if rate is None:
        missing.insert(0, f"steps per second: fewer than {FEWEST} steps")
    if best[2] is None:
        missing.insert(0, "the wait for data: no whole pass over a DataLoader was seen")
    return Speed(rate, best[2], seconds, tuple(missing))


def _rate(rows: list[tuple[float, int]]) -> float | None:
    if not rows or rows[-1][1] < FEWEST:
        return None
    warm = [row for row in rows if row[1] >= WARM_UP * rows[-1][1]]
    (began, first), (ended, last) = warm[0], warm[-1]
    return (last - first) / (ended - began) if last > first and ended > began else None


def _wait(rows: list[tuple[float, int]], passes: list[tuple[float, float]]) -> float | None:
    """Share of the time between the first step and the end of the last pass that the loader kept the training waiting."""
    if not passes:
        return None
    span = max(t for t, _ in passes) - rows[0][0]
    return min(1.0, sum(waited for _, waited in passes) / span) if span > 0 else None
