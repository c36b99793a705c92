"""Takes the stacks of a process from outside: Python and native, of every thread, without its help.

Three ways, best first: py-spy with native frames, py-spy with Python frames only, and the process's own faulthandler, which
writes to a file on a signal and needs no rights. Which one was used is part of the result.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainsleuth.case.fatal import stacks as stacks_of
from trainsleuth.case.standstill import Frame, ThreadSeen
from trainsleuth.supervise.processes import signals_caught

PATIENCE = 12.0
DUMP_SIGNAL = getattr(signal, "SIGRTMIN", 0) + 9 if hasattr(signal, "SIGRTMIN") else 0


@dataclass(frozen=True)
class Stacks:
    how: str  # "native", "python", "faulthandler" or ""
    threads: tuple[ThreadSeen, ...] = ()
    missing: str = ""  # what stood in the way of more


def py_spy() -> str | None:
    beside = Path(sysconfig.get_path("scripts")) / "py-spy"
    return str(beside) if beside.is_file() else shutil.which("py-spy")


def take(pid: int, beats: Path | None = None, native: bool = True) -> Stacks:
    """The stacks of one process in the best way that works."""
    program = py_spy()
    why = "py-spy is not installed" if program is None else ""
    if program is not None:
        for arguments, how in ((["--native"], "native"), ([], "python")) if native else (([], "python"),):
            found, why = _by_py_spy(program, pid, arguments)
            if found is not None:
                return Stacks(how, found, why if how != "native" and native else "")
    written = _by_faulthandler(pid, beats) if beats is not None else None
    missing = f"native frames and the state of each thread ({why})" if why else "native frames"
    return Stacks("faulthandler", written, missing) if written else Stacks("", (), missing)


def is_fetching(thread: ThreadSeen) -> bool:
    """Whether this is a data loader's worker that is making a batch."""
    return any(frame.file.endswith("torch/utils/data/_utils/fetch.py") for frame in thread.frames)


def sample_of(pid: int) -> str:
    """The index of the sample that a data loader's worker is fetching, as its own frames have it."""
    program = py_spy()
    rows, _ = _dump(program, pid, ["--locals"]) if program is not None else (None, "")
    for row in rows or ():
        for frame in row.get("frames", []):
            if not str(frame.get("filename", "")).endswith("torch/utils/data/_utils/fetch.py"):
                continue
            values = {str(local.get("name")): str(local.get("repr")) for local in frame.get("locals") or []}
            for name in ("idx", "possibly_batched_index"):
                if name in values:
                    return values[name][:80]
    return ""


def _by_py_spy(program: str, pid: int, arguments: list[str]) -> tuple[tuple[ThreadSeen, ...] | None, str]:
    rows, why = _dump(program, pid, arguments)
    try:
        return (None, why) if rows is None else (tuple(_stack(row) for row in rows), "")
    except (ValueError, KeyError, TypeError) as problem:
        return None, f"py-spy said something that is not understood ({type(problem).__name__})"


def _dump(program: str, pid: int, arguments: list[str]) -> tuple[list[dict[str, Any]] | None, str]:
    try:
        done = subprocess.run(
            [program, "dump", "--json", "--pid", str(pid), *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as problem:
        return None, type(problem).__name__
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        denied = any("ermission" in line for line in words)
        return None, "ptrace is not permitted" if denied else (words[0][:160] if words else "py-spy failed")
    try:
        rows = json.loads(done.stdout)
    except ValueError:
        return None, "py-spy was cut short"
    return (rows, "") if isinstance(rows, list) else (None, "py-spy said something that is not understood")


def _stack(row: dict[str, Any]) -> ThreadSeen:
    frames = tuple(Frame(str(f["name"]), str(f["filename"]), int(f["line"] or 0)) for f in row["frames"])
    tid = row.get("os_thread_id") or 0
    return ThreadSeen(int(tid), str(row.get("thread_name") or ""), frames, bool(row.get("owns_gil")))


def _by_faulthandler(pid: int, beats: Path) -> tuple[ThreadSeen, ...]:
    """Ask the process to write its stacks. Never sent to a process that has no handler: it would die of it."""
    if not DUMP_SIGNAL or not signals_caught(pid) >> (DUMP_SIGNAL - 1) & 1:
        return ()
    files = {path: path.stat().st_size for path in beats.glob("*.stack")}
    try:
        os.kill(pid, DUMP_SIGNAL)
    except OSError:
        return ()
    text, deadline = "", time.monotonic() + 2.0
    while time.monotonic() < deadline:
        time.sleep(0.05)
        grown = [path for path, size in files.items() if path.stat().st_size > size]
        if grown:
            time.sleep(0.1)
            with grown[0].open("rb") as file:
                file.seek(files[grown[0]])
                text = file.read().decode("utf-8", "replace")
            break
    return read_faulthandler(text, pid)


def read_faulthandler(text: str, pid: int) -> tuple[ThreadSeen, ...]:
    """What faulthandler wrote: threads, the first one of the process last."""
    stacks = stacks_of(text)
    return tuple(
        ThreadSeen(pid if index == len(stacks) - 1 else number, "MainThread" if index == len(stacks) - 1 else "", tuple(frames))
        for index, (number, frames) in enumerate(stacks)
    )
