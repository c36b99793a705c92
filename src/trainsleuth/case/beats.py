"""Reads heartbeat pages: where a process is, from outside, even when it hangs or was killed."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LAYOUT = struct.Struct("<8sIIQQdd")
COLLECTIVE = struct.Struct("<QI")  # how many were entered so far, length of what is said of the last one
COLLECTIVE_AT = 64
MAGIC = b"TSBEAT1\0"
PHASES = ("starting", "outside", "forward", "backward", "step", "data", "ended")


@dataclass(frozen=True)
class Beat:
    pid: int
    phase: str
    windows: int
    backwards: int
    since: float
    started: float
    collectives: int = 0
    collective: dict[str, Any] = field(default_factory=dict)  # the last one: name, shape, line, sequence number


def read_beats(folder: Path) -> list[Beat]:
    """Every readable page of a folder; half-made ones are passed over."""
    beats = []
    for path in sorted(folder.glob("*.beat")):
        try:
            page = path.read_bytes()
        except OSError:
            continue
        if len(page) < LAYOUT.size:
            continue
        magic, pid, phase, windows, backwards, since, started = LAYOUT.unpack_from(page)
        if magic == MAGIC and phase < len(PHASES):
            beats.append(Beat(pid, PHASES[phase], windows, backwards, since, started, *_collective(page)))
    return beats


def _collective(page: bytes) -> tuple[int, dict[str, Any]]:
    if len(page) < COLLECTIVE_AT + COLLECTIVE.size:
        return 0, {}
    count, length = COLLECTIVE.unpack_from(page, COLLECTIVE_AT)
    text = page[COLLECTIVE_AT + COLLECTIVE.size :][:length]
    try:
        last = json.loads(text) if text else {}
    except ValueError:  # it was being written
        last = {}
    return count, last if isinstance(last, dict) else {}
