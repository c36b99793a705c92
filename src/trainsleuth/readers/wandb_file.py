"""W&B offline runs: the `.wandb` file with its history and configuration, and the internal log beside it that names lost points.

A `.wandb` file is a LevelDB log of protocol buffer records. W&B itself ships no reader for it any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainsleuth.readers import wandb_log
from trainsleuth.readers.kinds import Fact, point, skipped
from trainsleuth.readers.leveldb_log import BlockLog
from trainsleuth.readers.tracebacks import Tracebacks
from trainsleuth.readers.wire import VARINT, NotAMessage, double, fields, inner, signed

NAME = "W&B offline run"
MAGIC = b":W&B"
PREAMBLE = 7
HISTORY, CONFIG, OUTPUT, RUN = 2, 5, 13, 17
MOST_DEPTH = 8


def recognises(path: Path, head: bytes) -> bool:
    return head.startswith(MAGIC)


def read(path: Path) -> Iterator[Fact]:
    yield {"k": "source", "format": NAME, "path": str(path)}
    not_understood = 0
    console = Tracebacks()
    try:
        with path.open("rb") as file:
            log = BlockLog(file, PREAMBLE)
            for number, record in enumerate(log.records(), 1):
                try:
                    yield from _facts(record, number, console)
                except NotAMessage:
                    not_understood += 1
    except OSError as problem:
        yield skipped(f"cannot be read: {problem.strerror}", 1, 0)
        return
    yield from console.end()
    if log.damaged:
        yield skipped("damaged record", log.damaged, 0)
    if not_understood:
        yield skipped("record that is not understood", not_understood, 0)
    if log.unfinished:
        yield skipped("unfinished record at the end (still being written, or cut off)", 1, 0)
    internal = path.parent / "logs" / wandb_log.FILE
    if internal.is_file():
        yield from wandb_log.lost_points(internal)


def _facts(record: bytes, number: int, console: Tracebacks) -> Iterator[Fact]:
    for kind, _, content in fields(record):
        if not isinstance(content, bytes):
            continue
        if kind == HISTORY:
            yield from _history(content, number)
        elif kind == CONFIG:
            yield from _settings(content)
        elif kind == RUN:
            for config in inner(content, 4):
                yield from _settings(config)
        elif kind == OUTPUT:
            for text in inner(content, 3):
                for line in text.decode("utf-8", "replace").splitlines():
                    yield from console.line(line, number)


def _history(content: bytes, number: int) -> Iterator[Fact]:
    values: dict[str, Any] = {}
    step = None
    for kind, _, value in fields(content):
        if kind == 1 and isinstance(value, bytes):
            name, held = _item(value)
            values[name] = held
        elif kind == 2 and isinstance(value, bytes):
            step = next((signed(v) for n, w, v in fields(value) if n == 1 and w == VARINT and isinstance(v, int)), 0)
    own = values.get("_step")
    step = int(own) if isinstance(own, (int, float)) and not isinstance(own, bool) and own == own and abs(own) < 1e18 else step
    time, epoch = _number(values.get("_timestamp")), _number(values.get("epoch"))
    for name, held in values.items():
        if not name.startswith("_"):
            for full_name, number_held in _numbers(name, held, 0):
                yield point(full_name, number_held, step=step, epoch=epoch, t=time, at=number)


def _item(content: bytes) -> tuple[str, Any]:
    name, nested, held = "", [], None
    for kind, wire, value in fields(content):
        if kind == 1 and isinstance(value, bytes):
            name = value.decode("utf-8", "replace")
        elif kind == 2 and isinstance(value, bytes):
            nested.append(value.decode("utf-8", "replace"))
        elif kind in (8, 16) and isinstance(value, bytes):
            held = _from_json(value)
        elif kind == 6:
            held = double(value)
        elif kind == 5 and wire == VARINT and isinstance(value, int):
            held = value >> 1 ^ -(value & 1)  # zigzag
    return name or ".".join(nested), held


def _from_json(text: bytes) -> Any:
    try:
        return json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e300 else None


def _numbers(name: str, value: Any, depth: int) -> Iterator[tuple[str, float]]:
    """The numbers in a logged value; W&B writes NaN and infinities as JSON's own words or as text."""
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield name, float(value) if abs(value) < 1 << 1000 else float("inf")
    elif isinstance(value, float):
        yield name, value
    elif isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        yield name, float(value)
    elif isinstance(value, dict) and "_type" not in value and depth < MOST_DEPTH:
        for key, item in value.items():
            yield from _numbers(f"{name}.{key}", item, depth + 1)


def _settings(config: bytes) -> Iterator[Fact]:
    for update in inner(config, 1):
        name, value = _item(update)
        if name and not name.startswith("_wandb"):
            yield from _setting(name, value, 0)


def _setting(name: str, value: Any, depth: int) -> Iterator[Fact]:
    if isinstance(value, dict) and value and depth < MOST_DEPTH:
        for key, item in value.items():
            yield from _setting(f"{name}.{key}", item, depth + 1)
    else:
        yield {"k": "setting", "name": name, "value": value}
