"""A curve of bounded length: each point is an interval with its count, mean and extremes; when it is full, neighbours merge."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist

MOST_POINTS = 2048
KEPT_VALUES = 64
FEW = 8  # rows: the scatter of fewer means tells little about their error


def _expected_range(n: int) -> float:
    """How many deviations lie between the least and the most of n normal values (Blom's approximation)."""
    return 2 * NormalDist().inv_cdf((n - 0.375) / (n + 0.25)) if n > 1 else 1.0


@dataclass
class Point:
    to: int
    n: int
    mean: float
    least: float
    most: float


@dataclass
class Curve:
    points: list[Point] = field(default_factory=list)
    count: int = 0
    last: float = math.nan
    not_finite: int = 0
    last_bad: int = 0  # how many values there were when one was last not finite
    first_values: list[float] = field(default_factory=list)
    began: int = 0  # windows that were made before its first value

    def add(
        self, to: int, n: int, mean: float, least: float | None, most: float | None, last: float,
        not_finite: int = 0, values: list[float] | None = None,
    ) -> None:  # fmt: skip
        self.last = last
        self.not_finite += not_finite
        self.count += n + not_finite
        if not_finite:
            self.last_bad = self.count
        if values and len(self.first_values) < KEPT_VALUES:
            self.first_values.extend(values)
        if n and math.isfinite(mean):
            self.points.append(Point(to, n, mean, mean if least is None else least, mean if most is None else most))
            if len(self.points) > MOST_POINTS:
                self._merge()

    def _merge(self) -> None:
        """Neighbours become one, the first sixteen and the last excepted."""
        head, body, tail = self.points[:16], self.points[16:-1], self.points[-1:]
        merged = []
        for left, right in zip(body[::2], body[1::2]):
            n = left.n + right.n
            mean = (left.mean * left.n + right.mean * right.n) / n
            merged.append(Point(right.to, n, mean, min(left.least, right.least), max(left.most, right.most)))
        if len(body) % 2:
            merged.append(body[-1])
        self.points = head + merged + tail

    def between(self, start: float, end: float) -> tuple[float, float, int]:
        """Mean, standard error and count of the part of the curve between two shares of its length (0 to 1)."""
        if not self.points:
            return math.nan, math.nan, 0
        total = self.points[-1].to
        chosen = [p for p in self.points if start * total < p.to <= end * total] or [self.points[-1 if end >= 1 else 0]]
        n = sum(p.n for p in chosen)
        mean = sum(p.mean * p.n for p in chosen) / n
        if len(chosen) < FEW:  # how many rows there are depends on the clock; the values that they cover do not
            spread = max(p.most for p in chosen) - min(p.least for p in chosen)
            return mean, spread / _expected_range(n) / math.sqrt(n), n
        variance = sum(p.n * (p.mean - mean) ** 2 for p in chosen) / n
        return mean, math.sqrt(variance / (len(chosen) - 1)), n

    @property
    def least(self) -> float:
        return min((p.least for p in self.points), default=math.nan)

    @property
    def most(self) -> float:
        return max((p.most for p in self.points), default=math.nan)

    @property
    def first(self) -> float:
        return self.first_values[0] if self.first_values else (self.points[0].mean if self.points else math.nan)
