"""Keras's CSVLogger: one row an epoch, the first column is `epoch`, the separator may be another than a comma."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trainsleuth.readers.kinds import Fact, point, skipped
from trainsleuth.readers.rows import cells, lines_of, number

NAME = "Keras CSVLogger"
SEPARATORS = ",;\t|"


def recognises(path: Path, head: bytes) -> bool:
    """By a header whose first column is `epoch` and which has a `loss` or a `val_` column."""
    return _header(head.partition(b"\n")[0].decode("utf-8", "replace").strip()) is not None


def _header(line: str) -> tuple[list[str], str] | None:
    for separator in SEPARATORS:
        names = cells(line, separator)
        if names[0] == "epoch" and any(name == "loss" or name.startswith("val_") for name in names) and "step" not in names:
            return names, separator
    return None


def read(path: Path) -> Iterator[Fact]:
    """`epoch` counts from 0. An epoch that comes again belongs to another run: the logger was told to append."""
    yield {"k": "source", "format": NAME, "path": str(path)}
    names, separator = ["epoch"], ","
    run, before, odd, first_odd = 0, -1.0, 0, 0
    try:
        for at, line in enumerate(lines_of(path), 1):
            header = _header(line)
            if header is not None:
                names, separator = header
                continue
            row = cells(line, separator)
            epoch = number(row[0])
            if len(row) != len(names) or epoch is None:
                odd, first_odd = odd + bool(line.strip()), first_odd or at
                continue
            run, before = run + (epoch <= before), epoch
            for name, cell in zip(names[1:], row[1:]):
                value = number(cell)
                if value is not None:
                    yield point(name, value, epoch=epoch, at=at, run=run, prefix="val" if name.startswith("val_") else "train")
    except OSError as problem:
        yield skipped(f"cannot be read: {problem.strerror}", 1, 0)
    if odd:
        yield skipped("row with another number of columns than the header", odd, first_odd)
