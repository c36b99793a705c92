"""Lightning's CSVLogger: `metrics.csv`, where each row fills some of the columns, and `hparams.yaml` beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trainsleuth.readers import yaml_config
from trainsleuth.readers.kinds import Fact, point, skipped
from trainsleuth.readers.rows import cells, lines_of, number, whole

NAME = "Lightning metrics.csv"


def recognises(path: Path, head: bytes) -> bool:
    """By its name and a column `step`."""
    names = cells(head.partition(b"\n")[0].decode("utf-8", "replace").strip())
    return path.name == "metrics.csv" and "step" in names and len(names) > 1


def read(path: Path) -> Iterator[Fact]:
    yield {"k": "source", "format": NAME, "path": str(path)}
    try:
        yield from _points(path)
    except OSError as problem:
        yield skipped(f"cannot be read: {problem.strerror}", 1, 0)
    beside = path.parent / "hparams.yaml"
    if beside.is_file():
        yield from yaml_config.settings(beside)


def _points(path: Path) -> Iterator[Fact]:
    """A header that comes again begins another run: the logger appended to the file of an earlier one."""
    names: list[str] = []
    run, odd, first_odd = 0, 0, 0
    for at, line in enumerate(lines_of(path), 1):
        row = cells(line)
        if "step" in row:
            run += bool(names)
            names = row
            continue
        if len(row) != len(names):
            odd, first_odd = odd + bool(line.strip()), first_odd or at
            continue
        by_name = dict(zip(names, row))
        step, epoch = whole(by_name.get("step", "")), number(by_name.get("epoch", ""))
        for name, cell in by_name.items():
            value = number(cell) if name not in ("step", "epoch") else None
            if value is not None:
                yield point(name, value, step=step, epoch=epoch, at=at, run=run)
    if odd:
        yield skipped("row with another number of columns than the header", odd, first_odd)
