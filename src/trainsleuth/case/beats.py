"""Reads heartbeat pages: where a process is, from outside, even when it hangs or was killed."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

LAYOUT = struct.Struct("<8sIIQQdd")
COLLECTIVE = struct.Struct("<QI")  # how many were entered so far, whether the last one is still going on
COLLECTIVE_AT = 64
NATIVE = struct.Struct("<Q")  # how many the default group has counted itself, DDP's own among them, after the latest backward
NATIVE_AT = 80
SLOTS, SLOTS_AT = 32, 128
SLOT = struct.Struct("<QII40s")  # of the latest: count, number of the place, length of the shape, the shape
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
    in_collective: bool = False
    latest: tuple[tuple[int, int, str], ...] = ()  # of the latest collectives: count, number of the place, shape
    native: int = 0  # collectives by the process group's own count, after the latest backward


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


def _collective(page: bytes) -> tuple[int, bool, tuple[tuple[int, int, str], ...], int]:
    if len(page) < SLOTS_AT + SLOTS * SLOT.size:
        return 0, False, (), 0
    count, inside = COLLECTIVE.unpack_from(page, COLLECTIVE_AT)
    rows = [SLOT.unpack_from(page, SLOTS_AT + SLOT.size * index) for index in range(SLOTS)]
    latest = sorted((n, number, text[:length].decode("ascii", "replace")) for n, number, length, text in rows if n)
    return count, bool(inside), tuple(latest), NATIVE.unpack_from(page, NATIVE_AT)[0]
