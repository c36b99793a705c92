"""Whether a difference between runs could be chance: small sequential tests, at most five per cent wrong altogether.

Under the hypothesis that a knob does nothing, a run with the knob is just a run with another seed. Where the loss is compared, runs
are added in pairs, and Student's test is made after each pair, at most four times; each time it may be wrong with one per cent. When
all runs are there, it is made once more on the differences within pairs, which hold nothing of what the seeds do; that may be wrong
with one per cent too. Losses that end at different powers of ten are compared by rank then instead. Where runs break or do not break,
Fisher's test is made once, on three runs with the knob and three without.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb, sqrt
from statistics import mean, stdev
from typing import NamedTuple

ERROR_RATE = 0.05
MOST_PAIRS = 4
CRITICAL = {1: 31.82, 2: 6.965, 3: 4.541, 4: 3.747, 5: 3.365, 6: 3.143, 7: 2.998, 8: 2.896}  # Student's t, one-sided 1 %
BOTH_SIDES = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306}  # Student's t, 5 % outside


class Interval(NamedTuple):
    """A mean difference, and between which limits the true one lies in 95 of 100 cases."""

    mean: float
    low: float
    high: float

    @property
    def excludes_zero(self) -> bool:
        return self.low > 0 or self.high < 0


def interval(differences: Sequence[float], noise: float = 0.0) -> Interval | None:
    """Student's t over differences of runs that have the same seed; they scatter by no less than the noise within runs.

    It is made once, on a number of pairs that was fixed before, so that its error rate is what it says. One pair tells nothing.
    """
    freedom = len(differences) - 1
    if freedom < 1:
        return None
    half = BOTH_SIDES[min(freedom, max(BOTH_SIDES))] * max(stdev(differences), noise) / sqrt(len(differences))
    return Interval(mean(differences), mean(differences) - half, mean(differences) + half)


def ends_lower(control: Sequence[float], turned: Sequence[float], noise: float) -> bool:
    """Whether the runs with the knob end lower than those without: Student's t over seeds.

    The spread over seeds is never taken for smaller than the noise within one run.
    """
    freedom = len(control) + len(turned) - 2
    if freedom < 1 or not turned:
        return False
    squares = sum((value - mean(control)) ** 2 for value in control) + sum((value - mean(turned)) ** 2 for value in turned)
    spread = max(sqrt(squares / freedom), noise)
    gain = mean(control) - mean(turned)
    return gain > CRITICAL[min(freedom, max(CRITICAL))] * spread * sqrt(1 / len(control) + 1 / len(turned))


def all_lower(control: Sequence[float], turned: Sequence[float]) -> bool:
    """Whether every run with the knob ends lower than every run without, and they are so many that chance does that in one of a hundred cases
    at most (Wilcoxon's rank test); it asks nothing of how losses scatter."""
    return max(turned) < min(control) and comb(len(control) + len(turned), len(turned)) >= 100


def lower_in_pairs(gains: Sequence[float], noise: float) -> bool:
    """Whether runs with the knob end lower than those without that have the same seed: Student's t over the differences."""
    freedom = len(gains) - 1
    if freedom < 1:
        return False
    return mean(gains) > CRITICAL[min(freedom, max(CRITICAL))] * max(stdev(gains), noise) / sqrt(len(gains))


def happens_less(control: Sequence[bool], turned: Sequence[bool]) -> float:
    """How likely it is by chance alone that what happened in the control runs happened so rarely in the others (Fisher's test)."""
    total, happened = len(control) + len(turned), sum(control) + sum(turned)
    ways = sum(
        comb(len(turned), k) * comb(len(control), happened - k)
        for k in range(sum(turned) + 1)
        if 0 <= happened - k <= len(control)
    )
    return ways / comb(total, happened)
