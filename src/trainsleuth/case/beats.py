"""Reads heartbeat pages: where a process is, from outside, even when it hangs or was killed."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

LAYOUT = struct.Struct("<8sIIQQdd")
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
            beats.append(Beat(pid, PHASES[phase], windows, backwards, since, started))
    return beats
