"""What the system knows about a process and those below it: threads, what they wait for, and signs of life."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True)
class Thread:
    tid: int
    name: str
    state: str  # R runs, S waits, D waits for a disk, T is stopped, Z is dead
    cpu: float  # seconds used so far
    switches: int  # how often it went to sleep of its own accord
    waits_in: str  # the kernel function, where the system tells


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    began: int  # in ticks since the machine started: tells a process from a later one of the same number
    command: tuple[str, ...]
    state: str
    threads: tuple[Thread, ...] = ()
    moved: int = 0  # bytes read and written so far
    faults: int = 0  # pages taken so far
    terminal: int = 0  # the device number of the terminal that it belongs to

    @property
    def main(self) -> Thread | None:
        return next((thread for thread in self.threads if thread.tid == self.pid), None)

    @property
    def is_python(self) -> bool:
        return bool(self.command) and "python" in os.path.basename(self.command[0])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _stat(folder: Path) -> tuple[str, list[str]]:
    """Name and the fields after it; the name may hold anything, blanks and brackets too."""
    text = _read(folder / "stat")
    opening, closing = text.find("("), text.rfind(")")
    return (text[opening + 1 : closing], text[closing + 2 :].split()) if closing > 0 else ("", [])


def _thread(folder: Path) -> Thread | None:
    name, fields = _stat(folder)
    if len(fields) < 13:
        return None
    switches = 0
    for line in _read(folder / "status").splitlines():
        if line.startswith("voluntary_ctxt_switches"):
            switches = int(line.split()[1])
    waits_in = _read(folder / "wchan").strip()
    cpu = (int(fields[11]) + int(fields[12])) / TICKS
    return Thread(int(folder.name), name, fields[0], cpu, switches, "" if waits_in == "0" else waits_in)


def look(pid: int) -> Process | None:
    """A process as it is now, or None if there is none."""
    folder = PROC / str(pid)
    _, fields = _stat(folder)
    if len(fields) < 20:
        return None
    command = tuple(word for word in _read(folder / "cmdline").split("\0") if word)
    try:
        tasks = sorted((folder / "task").iterdir(), key=lambda path: int(path.name))
    except OSError:
        tasks = []
    moved = 0
    for line in _read(folder / "io").splitlines():
        if line.startswith(("rchar", "wchar")):
            moved += int(line.split()[1])
    threads = tuple(thread for task in tasks[:512] if (thread := _thread(task)) is not None)
    return Process(
        pid, int(fields[1]), int(fields[19]), command, fields[0], threads, moved, int(fields[7]) + int(fields[9]), int(fields[4])
    )


def parents() -> dict[int, int]:
    """Every process on the machine and its parent."""
    found = {}
    for folder in PROC.iterdir():
        if folder.name.isdigit():
            _, fields = _stat(folder)
            if len(fields) > 1:
                found[int(folder.name)] = int(fields[1])
    return found


def below(roots: Iterable[int], but: Iterable[int] = ()) -> list[int]:
    """These processes and all below them, parents first; what `but` names is left out, with what is below it."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    left_out, found, waiting = set(but), [], list(roots)
    while waiting:
        pid = waiting.pop(0)
        if pid not in left_out and pid not in found:
            found.append(pid)
            waiting.extend(sorted(children.get(pid, [])))
    return found


@dataclass(frozen=True)
class Look:
    """The processes of a run at one moment."""

    at: float
    processes: dict[int, Process] = field(default_factory=dict)


def look_at(at: float, pids: Iterable[int]) -> Look:
    return Look(at, {pid: process for pid in pids if (process := look(pid)) is not None})


def is_alive(pid: int) -> bool:
    _, fields = _stat(PROC / str(pid))
    return bool(fields) and fields[0] not in "ZX"


def environment_of(pid: int) -> dict[str, str]:
    """The environment a process was started with."""
    pairs = (entry.partition("=") for entry in _read(PROC / str(pid) / "environ").split("\0") if "=" in entry)
    return {name: value for name, _, value in pairs}


def libraries_of(pid: int) -> list[str]:
    """The shared libraries that a process has loaded, each once."""
    found: dict[str, None] = {}
    for line in _read(PROC / str(pid) / "maps").splitlines():
        path = line[73:].strip() if len(line) > 73 else ""
        if ".so" in path:
            found.setdefault(path)
    return list(found)


def signals_caught(pid: int) -> int:
    """The set of signals that a process has handlers for, as a bit mask."""
    for line in _read(PROC / str(pid) / "status").splitlines():
        if line.startswith("SigCgt"):
            return int(line.split()[1], 16)
    return 0
