"""MLflow's file store: `mlruns/<experiment>/<run>/metrics/<name>` has a line `time value step` a point; `params/<name>` holds a value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from trainsleuth.readers.kinds import Fact, columns, skipped
from trainsleuth.readers.rows import lines_of, number, whole

NAME = "MLflow file store"
BATCH = 4096
_LINE = re.compile(rb"\d{9,19} \S+( -?\d+)?( |\r?\n|$)")


def recognises(path: Path, head: bytes) -> bool:
    """By the folder it lies in, of a run that has its `meta.yaml`."""
    home = _home(path)
    if home is None or not (home[0].parent / "meta.yaml").is_file():
        return False
    return home[0].name == "params" or _LINE.match(head) is not None


def _home(path: Path) -> tuple[Path, str] | None:
    """The folder `metrics` or `params` of a run, and the name of the metric below it, which may have folders of its own."""
    for parent in list(path.parents)[:6]:
        if parent.name in ("metrics", "params"):
            return parent, path.relative_to(parent).as_posix()
    return None


def read(path: Path) -> Iterator[Fact]:
    yield {"k": "source", "format": NAME, "path": str(path)}
    home = _home(path)
    folder, name = home if home is not None else (path.parent, path.name)
    try:
        if folder.name == "params":
            with path.open("rb") as file:
                yield {"k": "setting", "name": name, "value": file.read(6000).decode("utf-8", "replace").strip()}
        else:
            yield from _points(path, name)
    except OSError as problem:
        yield skipped(f"cannot be read: {problem.strerror}", 1, 0)


def _points(path: Path, name: str) -> Iterator[Fact]:
    odd = first_odd = 0
    values: list[float] = []
    times: list[float] = []
    steps: list[int] = []
    lines: list[int] = []
    for at, line in enumerate(lines_of(path), 1):
        words = line.split()
        time = whole(words[0]) if len(words) in (2, 3, 5) else None
        value = number(words[1]) if time is not None else None
        step = whole(words[2]) if len(words) > 2 else 0
        if value is None or time is None or step is None:
            odd, first_odd = odd + bool(line.strip()), first_odd or at
            continue
        values.append(value)
        times.append(time / 1000)
        steps.append(step)
        lines.append(at)
        if len(values) >= BATCH:
            yield columns(name, values, lines, steps=steps, times=times)
            values, times, steps, lines = [], [], [], []
    if values:
        yield columns(name, values, lines, steps=steps, times=times)
    if odd:
        yield skipped("line that is no point", odd, first_odd)
