"""Hugging Face's `trainer_state.json`: its log history entry by entry, and what it says of the run. A file that was cut is read so far."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainsleuth.readers.kinds import Fact, point, skipped

NAME = "Hugging Face trainer state"
CHUNK = 1 << 18
LARGEST_ENTRY = 1 << 20
_HISTORY = re.compile(r'"log_history"\s*:\s*\[')
_SETTING = re.compile(r'^\s*"(?P<name>\w+)"\s*:\s*(?P<value>"(?:[^"\\]|\\.)*"|[-\w.+]+)\s*,?\s*$', re.MULTILINE)
_NOT_METRICS = ("step", "epoch", "total_flos")


def recognises(path: Path, head: bytes) -> bool:
    return path.name == "trainer_state.json" or (head.lstrip()[:1] == b"{" and b'"log_history"' in head)


def read(path: Path) -> Iterator[Fact]:
    yield {"k": "source", "format": NAME, "path": str(path)}
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            yield from _facts(file)
    except OSError as problem:
        yield skipped(f"cannot be read: {problem.strerror}", 1, 0)


def _facts(file: Any) -> Iterator[Fact]:
    text = ""
    while (begin := _HISTORY.search(text)) is None:
        more = file.read(CHUNK)
        if not more or len(text) > 16 * CHUNK:
            yield from _settings(text)
            yield skipped("file without a log history", 1, 0)
            return
        text += more
    yield from _settings(text[: begin.start()])
    text = text[begin.end() :]
    decoder = json.JSONDecoder()
    number = 0
    while True:
        text = text.lstrip(" \r\n\t,")
        if text.startswith("]"):
            yield from _settings(text[1:] + file.read(CHUNK))
            return
        entry, end = _decoded(decoder, text)
        if end:
            number += 1
            yield from _entry(entry, number)
            text = text[end:]
            continue
        more = file.read(CHUNK)
        if not more or len(text) > LARGEST_ENTRY:
            if text.strip():
                yield skipped("rest of a log history that is cut off or damaged", 1, number + 1)
            return
        text += more


def _decoded(decoder: json.JSONDecoder, text: str) -> tuple[Any, int]:
    """The entry at the beginning and where it ends; 0 if it is not whole."""
    if not text.startswith("{"):
        return None, 0
    try:
        return decoder.raw_decode(text)
    except (ValueError, RecursionError):
        return None, 0


def _settings(text: str) -> Iterator[Fact]:
    for match in _SETTING.finditer(text):
        try:
            value = json.loads(match["value"])
        except ValueError:
            continue
        if match["name"] not in ("global_step", "epoch", "total_flos", "best_metric"):
            yield {"k": "setting", "name": match["name"], "value": value}


def _entry(entry: Any, number: int) -> Iterator[Fact]:
    if not isinstance(entry, dict):
        return
    step, epoch = entry.get("step"), entry.get("epoch")
    for name, value in entry.items():
        if name in _NOT_METRICS or isinstance(value, bool):
            continue
        if isinstance(value, str) and value.lower() in ("nan", "inf", "-inf", "infinity", "-infinity"):
            value = float(value)
        if isinstance(value, (int, float)) and not (isinstance(value, int) and abs(value) >= 1 << 1000):
            yield point(
                str(name), float(value), at=number, step=step if isinstance(step, int) and not isinstance(step, bool) else None,
                epoch=float(epoch) if isinstance(epoch, (int, float)) and abs(epoch) < 1e15 else None,
                prefix=str(name).partition("_")[0] if str(name).startswith(("eval_", "test_", "train_")) else "",
            )  # fmt: skip
