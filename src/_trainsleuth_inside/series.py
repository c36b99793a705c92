"""The values of one loss, reduced to one row per written interval."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional

from _trainsleuth_inside.places import Place

KEPT_TO_THE_DIGIT = 16


class LossSeries:
    """Of each interval: how many values, their mean, extremes and last; of a short one the values themselves."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.count = 0
        self.rested: List[float] = []  # values read in windows that nobody looks at; they are added when a row is taken
        self.forget()

    def forget(self) -> None:
        self._n = 0
        self._sum = 0.0
        self._least = math.inf
        self._most = -math.inf
        self._last = math.nan
        self._not_finite = 0
        self._values: List[float] = []

    @property
    def is_bad(self) -> bool:
        """Whether the last value is not finite."""
        return self._not_finite > 0 and not math.isfinite(self._last)

    def add(self, value: float) -> None:
        if self.rested:
            self._add_rested()
        self.count += 1
        self._last = value
        if len(self._values) < KEPT_TO_THE_DIGIT:
            self._values.append(value)
        if not math.isfinite(value):
            self._not_finite += 1
            return
        self._n += 1
        self._sum += value
        if value < self._least:
            self._least = value
        if value > self._most:
            self._most = value

    def _add_rested(self) -> None:
        values, self.rested = self.rested, []
        self.add_all(values)

    def add_all(self, values: List[float]) -> None:
        for value in values:
            self.add(value)

    def take(self) -> Optional[Dict[str, Any]]:
        self._add_rested()
        if self._n + self._not_finite == 0:
            return None
        row = {
            "at": self.place,
            "to": self.count,
            "n": self._n,
            "mean": self._sum / self._n if self._n else math.nan,
            "least": self._least if self._n else None,
            "most": self._most if self._n else None,
            "last": self._last,
            "not_finite": self._not_finite,
        }
        if self._n + self._not_finite <= KEPT_TO_THE_DIGIT:
            row["values"] = self._values
        self.forget()
        return row
