"""Keeps the cost of watching within a budget: decides from measured times which windows are looked at closely.

Windows to look at are multiples of a power of two, so that all ranks look at the same ones, and the Fibonacci numbers, which
are few and fall on no period that a loader may have. The first three, where faults of structure show, and the Fibonacci numbers
below a hundred are looked at whatever they cost, later ones as long as they cost little in all.
"""

from __future__ import annotations

import bisect
import time
from typing import FrozenSet

ALWAYS = 3
FREE_UNTIL = 100
QUICK = 0.0015  # seconds: after a look a program with windows as short as that is slower for a while, which nobody can book; it gets half the looks


def _fibonacci(most: int) -> FrozenSet[int]:
    numbers, last, present = set(), 3, 5
    while present < most:
        numbers.add(present)
        last, present = present, last + present
    return frozenset(numbers)


LANDMARKS = _fibonacci(1 << 40)
_ASCENDING = sorted(LANDMARKS)


def own_seconds() -> float:
    """A clock that stands still while this thread is ready and others have the processor: that time buys no looks."""
    try:
        with open("/proc/thread-self/schedstat", "rb") as file:
            waited = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):  # no Linux, or one that does not count
        waited = 0
    return time.perf_counter() - 1e-9 * waited


def _is_free(window: int) -> bool:
    return window <= ALWAYS or (window < FREE_UNTIL and window in LANDMARKS)


class Share:
    """One kind of optional work, its measured cost, and how often it may be done."""

    def __init__(self, budget: float, allowance: float, densest: int = 1) -> None:
        """`allowance`: seconds that may be spent on landmarks before they have to fit the budget."""
        self._full = self._budget = budget
        self._allowance = allowance
        self._densest = densest
        self._cost = 0.0
        self._awake = 0.0
        self.stride = densest
        self.restart()

    def restart(self) -> None:
        """Begin to count anew: a forked child has its own time and its own costs."""
        self._spent = 0.0
        self._began = own_seconds()
        self._last_written = 0.0

    def next_after(self, window: int) -> int:
        """The next window that might be looked at."""
        by_stride = (window // self.stride + 1) * self.stride
        return min(by_stride, _ASCENDING[bisect.bisect_right(_ASCENDING, window)])

    def wants(self, window: int) -> bool:
        if _is_free(window):
            return True
        if window in LANDMARKS:
            return self._affordable(self._allowance)
        return window % self.stride == 0 and self._affordable()

    def _affordable(self, allowance: float = 0.0) -> bool:
        elapsed = own_seconds() - self._began
        return self._spent <= self._budget * elapsed + allowance and elapsed - self._last_written >= elapsed / 400

    def paid(self, seconds: float, window: int, period: float) -> None:
        """Book the cost of one closely watched window; `period` is the usual length of a window in seconds."""
        self._last_written = own_seconds() - self._began
        self._cost = seconds if self._cost == 0.0 else 0.7 * self._cost + 0.3 * seconds
        if not _is_free(window):
            self._spent += seconds
        self._adapt(period)

    def was_awake(self, seconds: float, period: float) -> None:
        """Book what it cost to be awake around one look."""
        self._awake = seconds if self._awake == 0.0 else 0.7 * self._awake + 0.3 * seconds
        self._spent += seconds
        self._adapt(period)

    def _adapt(self, period: float) -> None:
        if period > 0:
            self._budget = 0.5 * self._full if period < QUICK else self._full
            needed = (self._cost + self._awake) / (self._budget * period)
            stride = self._densest
            while stride < needed and stride < 1 << 30:
                stride *= 2
            self.stride = stride


class Period:
    """The usual length of a window, as a running mean that a single slow window hardly moves."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self._window = 0
        self.seconds = 0.0

    def tick(self, window: int) -> None:
        now, passed = time.perf_counter(), max(1, window - self._window)
        length = (now - self._last) / passed
        self._last, self._window = now, window
        if self.seconds == 0.0:
            self.seconds = length
        else:
            self.seconds += (1 - 0.9**passed) * (min(length, 4 * self.seconds) - self.seconds)
