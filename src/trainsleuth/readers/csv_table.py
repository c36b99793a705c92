"""Tables with a head: CSV in any of the usual separators. Columns named like epochs, steps and times place the rows."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from trainsleuth.readers.kinds import Fact, columns, skipped
from trainsleuth.readers.line_layout import axis_of

NAME = "CSV table"
ROWS = 4096
MOST_COLUMNS = 2000
TIME_NAMES = ("timestamp", "_timestamp", "wall_time", "walltime", "wall time", "time", "date", "datetime")


def recognises(path: Path, head: bytes) -> bool:
    """A head of names, and rows with as many cells, most of them numbers."""
    lines = [line for line in head.decode("utf-8", "replace").splitlines()[:6] if line.strip()]
    if len(lines) < 2 or lines[0][:1] in "{[":
        return False
    separator = _separator(lines[0])
    if separator is None:
        return False
    try:
        rows = list(csv.reader(lines[: 5 if len(lines) > 5 else None], delimiter=separator))
    except csv.Error:
        return False
    if len(rows) < 2:
        return False  # a quote that does not end
    names, first = rows[0], rows[1]
    if len(names) < 2 or any(_number(name) is not None for name in names) or any(len(name) > 80 for name in names):
        return False
    filled = [cell for cell in first if cell.strip()]
    numbers = sum(_number(cell) is not None for cell in filled)
    return abs(len(first) - len(names)) <= 1 and numbers >= max(1, len(filled) // 2)


def _separator(line: str) -> str | None:
    best = max(",;\t|", key=line.count)
    return best if line.count(best) else None


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def read(path: Path) -> Iterator[Fact]:
    yield {"k": "source", "format": NAME, "path": str(path)}
    try:
        with path.open("r", encoding="utf-8-sig", errors="replace", newline="") as file:
            yield from _table(file)
    except OSError as problem:
        yield skipped(f"the rest of the file: {problem.strerror}", 1, 0)


def _table(file: io.TextIOWrapper) -> Iterator[Fact]:
    head = file.readline(1 << 16)
    separator = _separator(head) or ","
    names = [name.strip() for name in next(csv.reader([head], delimiter=separator), [])][:MOST_COLUMNS]
    if len(set(names)) < len(names):
        names = [name if names.index(name) == at else f"{name} ({at + 1})" for at, name in enumerate(names)]
    axes = _axes(names)
    reader = csv.reader((line.replace("\0", "") for line in file), delimiter=separator)
    state = _Runs()
    odd = first_odd = 0
    line = 2
    while True:
        rows, broken = _some(reader)
        if not rows and not broken:
            break
        whole = [(at, row) for at, row in enumerate(rows, line) if len(row) == len(names)]
        odd += len(rows) - len(whole) - sum(not row for row in rows) + broken
        first_odd = first_odd or (line if odd else 0)
        line += len(rows) + broken
        yield from _facts(names, axes, whole, state)
    if odd > 0:
        yield skipped("rows with another number of cells than the head", odd, first_odd)


def _some(reader: Iterator[list[str]]) -> tuple[list[list[str]], int]:
    """The next rows; a row that the csv module refuses is counted and left out."""
    rows: list[list[str]] = []
    try:
        rows.extend(islice(reader, ROWS))
    except csv.Error:
        return rows, 1
    return rows, 0


def _axes(names: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for index, name in enumerate(names):
        low = name.lower().strip()
        axis = "time" if low in TIME_NAMES else axis_of(low)
        if axis and axis not in found:
            found[axis] = index
    return found


class _Runs:
    """A table to which several runs were appended falls back to its first row's place."""

    def __init__(self) -> None:
        self.run = 0
        self.first: float | None = None
        self.last: float | None = None

    def of(self, position: float | None) -> int:
        if position is None:
            return self.run
        if self.first is None:
            self.first = position
        elif self.last is not None and position < self.last and position <= self.first:
            self.run += 1
        self.last = position
        return self.run


def _facts(names: list[str], axes: dict[str, int], rows: list[tuple[int, list[str]]], state: _Runs) -> Iterable[Fact]:
    numbers = {axis: [_number(row[index]) for _, row in rows] for axis, index in axes.items()}
    steps, epochs, times = (_filled(numbers.get(axis)) for axis in ("step", "epoch", "time"))
    position = steps or epochs
    runs = [state.of(position[index] if position else None) for index in range(len(rows))]
    for column, name in enumerate(names):
        if column in axes.values() and axis_of(name.lower()):
            continue
        kept = [(index, value) for index, (_, row) in enumerate(rows) if (value := _number(row[column])) is not None]
        for run in sorted({runs[index] for index, _ in kept}):
            part = [(index, value) for index, value in kept if runs[index] == run]
            yield columns(
                name or f"column {column + 1}", [value for _, value in part], [rows[index][0] for index, _ in part],
                steps=[int(steps[index]) for index, _ in part] if steps else None,
                epochs=[epochs[index] for index, _ in part] if epochs else None,
                times=[times[index] for index, _ in part] if times and times[0] > 1e8 else None,
                run=run, digits=_decimals(rows[part[0][0]][1][column]),
            )  # fmt: skip


def _decimals(cell: str) -> int | None:
    return None if "e" in cell.lower() else len(cell.strip().partition(".")[2])


def _filled(column: list[float | None] | None) -> list[float] | None:
    """Gaps are filled from below, then from above: a row of validation stands where the next row of training stands."""
    if not column or all(value is None or not math.isfinite(value) for value in column):
        return None
    known: float | None = None
    filled: list[float | None] = []
    for value in column:
        known = value if value is not None and math.isfinite(value) else known
        filled.append(known)
    first = next(value for value in filled if value is not None)
    return [first if value is None else value for value in filled]
