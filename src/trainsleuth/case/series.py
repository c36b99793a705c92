"""One logged name over a run: intervals of bounded number, and exactly what must not be lost: ends, digits, NaN, steps that go back."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from operator import le
from typing import Any

from trainsleuth.case.roles import Role, Split, role_of, split_of

MOST_INTERVALS = 2048
MOST_KEPT = 16


@dataclass
class Interval:
    """Values that follow each other, and where the last of them stood."""

    to: int  # values so far, this interval included
    n: int
    mean: float
    least: float
    most: float
    step: int | None
    epoch: float | None
    t: float | None
    line: int


@dataclass(frozen=True)
class Broken:
    """Where a value was not finite for the first time, or again after finite ones."""

    line: int
    value: float
    step: int | None
    epoch: float | None
    after: int  # finite values before it


@dataclass(frozen=True)
class StepBack:
    line: int
    before: int
    step: int


@dataclass
class Series:
    name: str
    intervals: list[Interval] = field(default_factory=list)
    count: int = 0  # finite values
    not_finite: int = 0
    first: float = math.nan
    last: float = math.nan  # the last finite one
    first_line: int = 0
    last_line: int = 0
    digits: int | None = None
    broken: list[Broken] = field(default_factory=list)
    broken_now: bool = False
    steps_back: list[StepBack] = field(default_factory=list)
    steps_back_count: int = 0
    _stride: int = 1
    _step: int | None = None
    _epoch: float | None = None

    @property
    def role(self) -> Role:
        return role_of(self.name)

    @property
    def split(self) -> Split:
        return split_of(self.name)

    @property
    def least(self) -> float:
        return min((interval.least for interval in self.intervals), default=math.nan)

    @property
    def most(self) -> float:
        return max((interval.most for interval in self.intervals), default=math.nan)

    @property
    def values(self) -> int:
        return self.count + self.not_finite

    @property
    def last_step(self) -> int | None:
        return self._step

    @property
    def last_epoch(self) -> float | None:
        return self._epoch

    def extend(
        self, values: list[float], lines: list[int], steps: list[int] | None, epochs: list[float] | None, times: list[float] | None,
        digits: int | None,
    ) -> None:  # fmt: skip
        if not values:
            return
        if digits is not None:
            self.digits = digits if self.digits is None else max(self.digits, digits)
        if not self.first_line:
            self.first_line = lines[0]
        self.last_line = lines[-1]
        if steps is not None:
            self._look_at_steps(steps, epochs, lines)
            self._step = steps[-1]
        if epochs is not None:
            self._epoch = epochs[-1]
        if not math.isfinite(sum(values)) and not all(map(math.isfinite, values)):
            kept = self._without_broken(values, lines, steps, epochs)
            if not kept:
                return
            values, lines = [values[i] for i in kept], [lines[i] for i in kept]
            steps, epochs, times = _picked(steps, kept), _picked(epochs, kept), _picked(times, kept)
        else:
            self.broken_now = False
        if not self.count:
            self.first = values[0]
        self.last = values[-1]
        self._add(values, lines, steps, epochs, times)

    def _add(
        self, values: list[float], lines: list[int], steps: list[int] | None, epochs: list[float] | None, times: list[float] | None
    ) -> None:
        stride = self._stride
        for start in range(0, len(values), stride):
            part = values[start : start + stride]
            end = start + len(part) - 1
            self.count += len(part)
            self.intervals.append(Interval(
                self.count, len(part), sum(part) / len(part), min(part), max(part), steps[end] if steps else None,
                epochs[end] if epochs else None, times[end] if times else None, lines[end],
            ))  # fmt: skip
        while len(self.intervals) > MOST_INTERVALS:
            self._merge()

    def _merge(self) -> None:
        """Neighbours become one, the first and the last sixteen excepted."""
        head, body, tail = self.intervals[:MOST_KEPT], self.intervals[MOST_KEPT:-MOST_KEPT], self.intervals[-MOST_KEPT:]
        merged = [_joined(left, right) for left, right in zip(body[::2], body[1::2])]
        self.intervals = head + merged + body[len(merged) * 2 :] + tail
        self._stride *= 2

    def _without_broken(
        self, values: list[float], lines: list[int], steps: list[int] | None, epochs: list[float] | None
    ) -> list[int]:
        kept = []
        for index, value in enumerate(values):
            if math.isfinite(value):
                kept.append(index)
                self.broken_now = False
                continue
            self.not_finite += 1
            if not self.broken_now and len(self.broken) < MOST_KEPT:
                self.broken.append(Broken(
                    lines[index], value, steps[index] if steps else None, epochs[index] if epochs else None, self.count + len(kept),
                ))  # fmt: skip
            self.broken_now = True
        return kept

    def _look_at_steps(self, steps: list[int], epochs: list[float] | None, lines: list[int]) -> None:
        """A step that is lower than the one before it in the same epoch; a count that starts anew with an epoch is none."""
        if (self._step is None or self._step <= steps[0]) and all(map(le, steps, steps[1:])):
            return
        step, epoch = self._step, self._epoch
        for index, now in enumerate(steps):
            here = epochs[index] if epochs is not None else None
            anew = here is not None and epoch is not None and here > epoch
            if step is not None and now < step and not anew:
                self.steps_back_count += 1
                if len(self.steps_back) < MOST_KEPT:
                    self.steps_back.append(StepBack(lines[index], step, now))
            step, epoch = now, here if here is not None else epoch

    # -- what rules ask ------------------------------------------------------------------------------------------------

    def mean_between(self, start: float, end: float) -> float:
        """The mean of the part between two shares of its length (0 to 1)."""
        chosen = self.part(start, end)
        return math.fsum(i.mean * i.n for i in chosen) / sum(i.n for i in chosen) if chosen else math.nan

    def part(self, start: float, end: float) -> list[Interval]:
        chosen = [i for i in self.intervals if start * self.count < i.to <= end * self.count]
        return chosen or self.intervals[-1 if end >= 1 else 0 :][:1]

    def segments(self, parts: int) -> list[float]:
        """The means of so many equal parts, in order."""
        return [self.mean_between(index / parts, (index + 1) / parts) for index in range(parts)]

    def noise(self, start: float, end: float) -> float:
        """The standard error of a part's mean, from how its intervals differ."""
        chosen = self.part(start, end)
        if len(chosen) < 2:
            return 0.0
        mean = math.fsum(i.mean for i in chosen) / len(chosen)
        return math.sqrt(math.fsum((i.mean - mean) ** 2 for i in chosen) / (len(chosen) - 1) / len(chosen))

    def flat_to_the_digit(self) -> bool:
        """Every value printed the same, to the last digit or but for its rounding."""
        if self.digits is None:
            return self.count > 1 and self.least == self.most
        return self.count > 1 and self.most - self.least <= 1.01 * 10.0**-self.digits

    def significant_digits(self) -> int:
        """How many digits of the last value were printed, leading zeros not counted."""
        if self.digits is None or not self.last:
            return 0 if not self.last else 15
        return max(0, self.digits + math.floor(math.log10(abs(self.last))) + 1)

    def text_of(self, value: float) -> str:
        """A value as the log prints it."""
        return f"{value:.{min(self.digits, 12)}f}" if self.digits is not None and self.digits >= 0 else f"{value:.6g}"


def _joined(left: Interval, right: Interval) -> Interval:
    n = left.n + right.n
    mean = (left.mean * left.n + right.mean * right.n) / n
    return Interval(right.to, n, mean, min(left.least, right.least), max(left.most, right.most), right.step, right.epoch, right.t, right.line)


def _picked(column: list[Any] | None, kept: list[int]) -> list[Any] | None:
    return None if column is None else [column[index] for index in kept]
