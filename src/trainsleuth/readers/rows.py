"""Rows of a CSV file, one by one, whatever was done to it: bytes that are no text, lines without end, quotes that never close."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

LONGEST_LINE = 1 << 20
MOST_COLUMNS = 10_000


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a text file; a line of more than a megabyte comes in pieces."""
    with path.open("rb") as file:
        while raw := file.readline(LONGEST_LINE):
            yield (
                raw.decode("utf-8-sig" if raw.startswith(b"\xef\xbb\xbf") else "utf-8", "replace")
                .rstrip("\r\n")
                .replace("\0", "")
            )


def cells(line: str, separator: str = ",") -> list[str]:
    """The cells of one line; a quoted cell that is not closed ends with its line."""
    if '"' not in line:
        return line.split(separator, MOST_COLUMNS)
    found: list[str] = []
    cell: list[str] = []
    quoted = False
    for letter in line:
        if letter == '"':
            quoted = not quoted
        elif letter == separator and not quoted:
            found.append("".join(cell))
            cell = []
        else:
            cell.append(letter)
    found.append("".join(cell))
    return found[:MOST_COLUMNS]


def number(cell: str) -> float | None:
    """The number in a cell; None for an empty cell and for words. Keras writes arrays as `[0.1, 0.2]`: no number."""
    try:
        return float(cell) if cell and len(cell) < 64 else None
    except ValueError:
        return None


def whole(cell: str) -> int | None:
    value = number(cell)
    return int(value) if value is not None and abs(value) < 1 << 62 and value == int(value) else None
