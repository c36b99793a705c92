"""Keeps the cost of watching within a budget: decides from measured times which windows are looked at closely.

Windows to look at are multiples of a power of two, so that all ranks look at the same ones. A few are always looked at,
whatever they cost: the first three, where faults of structure show, and then the Fibonacci numbers, which are few and fall
on no period that a loader may have.
"""

from __future__ import annotations

import time
from typing import FrozenSet

ALWAYS = 3


def _fibonacci(most: int) -> FrozenSet[int]:
    numbers, last, present = set(), 3, 5
    while present < most:
        numbers.add(present)
        last, present = present, last + present
    return frozenset(numbers)


LANDMARKS = _fibonacci(1 << 40)


class Share:
    """One kind of optional work, its measured cost, and how often it may be done."""

    def __init__(self, budget: float, densest: int = 1) -> None:
        self._budget = budget
        self._densest = densest
        self._cost = 0.0
        self._spent = 0.0
        self._began = time.perf_counter()
        self._last_written = 0.0
        self.stride = densest

    def wants(self, window: int) -> bool:
        return window <= ALWAYS or window in LANDMARKS or (window % self.stride == 0 and self._affordable())

    def _affordable(self) -> bool:
        elapsed = time.perf_counter() - self._began
        return self._spent <= self._budget * elapsed and elapsed - self._last_written >= elapsed / 400

    def paid(self, seconds: float, window: int, period: float) -> None:
        """Book the cost of one closely watched window; `period` is the usual length of a window in seconds."""
        self._last_written = time.perf_counter() - self._began
        self._cost = seconds if self._cost == 0.0 else 0.7 * self._cost + 0.3 * seconds
        if window > ALWAYS and window not in LANDMARKS:
            self._spent += seconds
        if period > 0:
            needed = self._cost / (self._budget * period)
            stride = self._densest
            while stride < needed and stride < 1 << 30:
                stride *= 2
            self.stride = stride


class Period:
    """The usual length of a window, as a running mean that a single slow window hardly moves."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.seconds = 0.0

    def tick(self) -> None:
        now = time.perf_counter()
        length, self._last = now - self._last, now
        if self.seconds == 0.0:
            self.seconds = length
        else:
            self.seconds += 0.1 * (min(length, 4 * self.seconds) - self.seconds)
