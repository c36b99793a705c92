"""What rules about half precision share: which gradients of 16 bit vanish, and who minds the size of a gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Optimizer
from trainsleuth.case.reading import Fact
from trainsleuth.rules.wording import count, percent

LOST_AT_A_CAST = 0.1  # share of a gradient, by size, that is too small for float16
CROWDED = 0.5  # share of what is left, by size, that sits on the four lowest steps of float16
ENOUGH_LOOKS = 3
OFTEN = 1 / 3
SMALLEST = {"float16": -24, "bfloat16": -133}  # powers of two
DIGITS = {"float16": 10, "bfloat16": 7}  # binary digits behind the point
NORMALISING = ("Adam", "Adagrad", "Adadelta", "Adafactor", "RMSprop", "Rprop", "Lion", "LAMB", "Muon", "Sophia")


@dataclass(frozen=True)
class Row:
    """One gradient in one backward: of a weight, of a module's output, or at a cast from 32 to 16 bit."""

    kind: str
    name: str
    zero: float
    share: float | None  # lost at the cast, or crowded at the bottom; None: nothing is left at all

    @property
    def struck(self) -> bool:
        return self.share is not None and self.share >= (LOST_AT_A_CAST if self.kind == "cast" else CROWDED)

    def said(self) -> str:
        of = {"weight": "gradient of", "output": "gradient at the output of", "cast": "gradient on its way back to"}[self.kind]
        if self.share is None:
            return f"{of} {self.name}: exactly 0 everywhere"
        if self.kind == "cast":
            return f"{of} {self.name}: {percent(self.share)} of it, by size, is below the smallest number of float16"
        return f"{of} {self.name}: {percent(self.zero)} are exactly 0, and {percent(self.share)} of the rest sit on the four lowest steps of float16"


@dataclass(frozen=True)
class Vanishing:
    """Gradients of float16 over the backwards that were looked at."""

    looks: int
    struck: int  # looks in which some vanished
    recent: bool  # in most of the latest looks, too
    weights: float  # share of the weights whose gradient vanished, in the typical look that is struck
    worst: list[Row]

    @property
    def lasting(self) -> bool:
        return self.struck >= ENOUGH_LOOKS and self.recent and self.struck >= OFTEN * self.looks

    @property
    def grave(self) -> bool:
        return self.lasting and self.weights >= 0.5

    def evidence(self) -> list[str]:
        return [
            f"gradients vanish in {self.struck} of {count(self.looks, 'backward')} looked at",
            *(row.said() for row in self.worst[:5]),
        ]


def in_float16(chart: ProcessChart) -> list[Fact]:
    """The backwards looked at in which gradients flowed in float16."""
    return [fact for fact in chart.half_gradients if fact["nodes"]["float16"]]


def vanishing(chart: ProcessChart, facts: Sequence[Fact]) -> Vanishing:
    looks = [rows for fact in facts if (rows := _rows(chart, fact))]
    struck = [_weights_suffer(rows) for rows in looks]
    shares, worst = [], []
    for rows, hit in zip(looks, struck):
        weights = [row for row in rows if row.kind == "weight"]
        if hit:
            gone = [row for row in weights if row.share is None or row.struck]
            shares.append(len(gone) / len(weights) if weights else 0.0)
            worst = sorted((row for row in rows if row.struck or row.share is None), key=_worst_first)
    last = struck[-5:]
    typical = sorted(shares)[len(shares) // 2] if shares else 0.0
    return Vanishing(len(looks), sum(struck), 2 * sum(last) >= len(last), typical, worst)


def _weights_suffer(rows: list[Row]) -> bool:
    """Outputs that lose a little are no harm: a weight's gradient is a sum over many of them."""
    if any(row.struck for row in rows if row.kind != "output"):
        return True
    return any(row.struck for row in rows) and any(row.share is None for row in rows if row.kind == "weight")


def _worst_first(row: Row) -> tuple[bool, float]:
    """What can be measured before what is merely zero."""
    return row.share is None, -(row.share or 0.0)


def _rows(chart: ProcessChart, fact: Fact) -> list[Row]:
    found = []
    for kind, name, _, zero, size, low in fact["rows"]:
        if not (math.isfinite(size) and math.isfinite(low)):
            return []
        parameter = chart.parameters.get(name) if kind == "weight" else None
        said = parameter.name if parameter else str(name or "a layer")
        found.append(Row(kind, said, zero, low / size if size > 0 else None))
    return found


def minds_size(optimizer: Optimizer) -> bool:
    """Whether its step grows with the gradient; Adam and its kin divide the size away."""
    return not any(name in optimizer.kind for name in NORMALISING)


def step_of(dtype: str, value: float) -> float:
    """The distance from a number to the next larger one of its type."""
    if value <= 0 or not math.isfinite(value):
        return 2.0 ** SMALLEST[dtype]
    return 2.0 ** max(math.floor(math.log2(value)) - DIGITS[dtype], SMALLEST[dtype])
