"""How the numbers of a text log are taken out, shape by shape, and what was taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from trainsleuth.readers.line_layout import Layout

MOST_CONTEXT_WORDS = 4

Number = TypeVar("Number", int, float)


@dataclass
class Course:
    """Where the lines with the same names have come to, to tell a new run from a step back."""

    first: float | None = None
    last: float | None = None
    line: int = 0
    laps: int = 0  # bars that began anew where nothing counts epochs
    lap_step: int | None = None


@dataclass
class Plan:
    """How the numbers of one shape are taken out."""

    layout: Layout
    table: bytes
    tokens: int
    values: list[tuple[str, int, float | None]]  # name, index of its token, the value if it is a word
    epoch: int | None
    step: int | None
    total: int | None
    names: list[int]  # tokens that are digits of names
    own_names: tuple[bytes, ...]
    course: Course
    row: bool = False
    settings: bool = False

    @property
    def context(self) -> bool:
        return not self.values and self.layout.has_axis and self.layout.words <= MOST_CONTEXT_WORDS


@dataclass
class Taken:
    """The numbers of all lines of one shape in one block."""

    plan: Plan
    lines: list[int]  # the orders of its pieces, until facts are made
    values: list[tuple[str, list[float], int | None]]  # name, values, printed decimals
    epochs: list[float] | None
    steps: list[int] | None
    totals: list[int] | None
    times: list[float] | None

    def part(self, start: int, end: int) -> Taken:
        def cut(column: list[Number] | None) -> list[Number] | None:
            return None if column is None else column[start:end]

        values = [(name, column[start:end], digits) for name, column, digits in self.values]
        return Taken(
            self.plan, self.lines[start:end], values, cut(self.epochs), cut(self.steps), cut(self.totals), cut(self.times)
        )
