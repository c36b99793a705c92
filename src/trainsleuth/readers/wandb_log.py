"""The internal log of W&B (`logs/debug-internal.log`), which names the records that W&B threw away because their step was old."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from trainsleuth.readers.kinds import Fact, skipped

NAME = "W&B internal log"
FILE = "debug-internal.log"
IGNORED = "ignoring partial history record"
LONGEST_LINE = 1 << 16


def recognises(path: Path, head: bytes) -> bool:
    return path.name == FILE or (b'"msg":"handler: ' in head and head.startswith(b'{"time":'))


def read(path: Path) -> Iterator[Fact]:
    """Its lost points; none where the run's own file lies beside it, which is read together with this log."""
    yield {"k": "source", "format": NAME, "path": str(path)}
    beside = next(iter(path.parent.parent.glob("*.wandb")), None) if path.parent.name == "logs" else None
    if beside is not None:
        yield skipped(f"it is read together with {beside.name}", 1, 0)
    else:
        yield from lost_points(path)


def lost_points(path: Path) -> Iterator[Fact]:
    not_understood = first = 0
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(LONGEST_LINE):
                number += 1
                if IGNORED.encode() not in line:
                    continue
                step = _steps(line)
                if step is None:
                    not_understood, first = not_understood + 1, first or number
                    continue
                older, current = step
                why = f"its step {older:,} is older than {current:,}, where W&B already was; W&B drops the whole record"
                yield {
                    "k": "dropped",
                    "name": None,
                    "step": older,
                    "why": why,
                    "at": number,
                    "current": current,
                    "logger": "wandb",
                }
    except OSError as problem:
        yield skipped(f"cannot be read: {problem.strerror}", 1, 0)
    if not_understood:
        yield skipped("line about a lost record that is not understood", not_understood, first)


def _steps(line: bytes) -> tuple[int, int] | None:
    try:
        entry = json.loads(line.decode("utf-8", "replace"))
        return int(entry["step"]), int(entry["current"])
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return None
