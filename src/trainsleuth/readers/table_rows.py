"""Tables in a log: a line of names, and below it lines with as many numbers."""

from __future__ import annotations

import re

_CELL = re.compile(rb"[^\s|,;\xe2]+")
_NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_CELL_NUMBER = re.compile(rb"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?:/\d+|[a-zA-Z%]{1,3})?:?")
_BAR = re.compile(rb":?\s*\d{1,3}%\s*[|\xe2].*")
_SEPARATOR = re.compile(rb"^[\s|+:=-]*$")
LONGEST = 600
FEWEST = 3
Cell = tuple[int, int] | None  # where the number of a cell stands, None for a word


def row_of(line: bytes) -> list[Cell] | None:
    """The cells of a line that is mostly bare numbers, else None."""
    if len(line) > LONGEST or b"=" in line:
        return None
    body = _before_the_bar(line)
    cells: list[Cell] = []
    for found in _CELL.finditer(body):
        number = _CELL_NUMBER.fullmatch(found[0])
        cells.append((found.start(), found.start() + number.end(1)) if number else None)
    numbers = sum(cell is not None for cell in cells)
    return cells if numbers >= FEWEST and len(cells) - numbers <= 1 else None


def _before_the_bar(line: bytes) -> bytes:
    match = _BAR.search(line) if b"%" in line else None
    return line if match is None else line[: match.start()]


def header_of(line: bytes) -> list[str] | None:
    """The names of a line that could stand above a table, else None."""
    if len(line) > LONGEST or _SEPARATOR.match(line):
        return None
    body = _before_the_bar(line)
    words = [_whole(found[0].rstrip(b":").decode("utf-8", "replace")) for found in _CELL.finditer(body)]
    if len(words) < FEWEST or any(_NUMBER.fullmatch(word.encode()) for word in words):
        return None
    return words if all(len(word) <= 40 for word in words) and len(set(words)) == len(words) else None


def _whole(name: str) -> str:
    """`mAP50-95)` without the bracket of its neighbours."""
    return name.rstrip(")") if "(" not in name else name
