"""Signs of life: tells a run that is slow from one that stands still, by two looks from outside a moment apart.

What counts is whether anything changes that a standstill would leave alone: processes that come and go, bytes that move, memory
that is touched, lines of the user's program that follow each other, threads that compute. A thread that runs is no sign of life
by itself: one that waits at an OpenMP barrier may do so at full speed. A worker that computes at one and the same sample of a map-style
data set is a weak sign: it may be slow, or go round for ever.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from trainsleuth.case.standstill import Frame, ThreadSeen, users_line
from trainsleuth.supervise.processes import Look, Process, Thread, look_at
from trainsleuth.supervise.stacks import Stacks, is_fetching, sample_of, take

BETWEEN_LOOKS = 2.0
BYTES = 16_384
PAGES = 300
BUSY = 0.25  # of a core
WAKES = 3
SPIN_RANGE = 64  # bytes of code that a waiting loop may be long
MORE_DUMPS = 2
OPENMP = ("libgomp", "libomp", "libiomp5")
DEBUGGERS = ("pdb.py", "bdb.py", "pudb", "ipdb", "pydevd", "debugpy", "code.py", "interactiveshell.py")
_ADDRESS = re.compile(r"^0x[0-9a-f]+$")


@dataclass(frozen=True)
class Judgement:
    life: Literal["none", "weak", "strong"]
    why: str = ""
    spinning: frozenset[int] = field(default_factory=frozenset)  # threads that run and only wait
    holds_up: bool = False  # weak, and something waits for it that gets nothing: other threads for the lock, a training for its batch


def judge(pids: Callable[[], list[int]], beats: Path | None, pause: Callable[[float], object] = time.sleep) -> Judgement:
    """Look twice, and once more into what runs."""
    lines_before = _lines(look_at(time.monotonic(), pids()), beats)
    samples = _samples(lines_before)
    first = look_at(time.monotonic(), pids())  # after the stacks: to take them wakes every thread up
    pause(BETWEEN_LOOKS)
    second = look_at(time.monotonic(), pids())
    found = _by_looks(first, second)
    if found is not None:
        return found
    lines_after = _lines(second, beats)
    moved = [pid for pid, stacks in lines_after.items() if _changed(lines_before.get(pid), stacks, pid)]
    held_up = {pid for pid, sample in _samples(lines_after).items() if sample and "None" not in sample and samples.get(pid) == sample}
    running = _running(first, second)
    if {*moved, *running} and {*moved, *running} <= held_up:
        return Judgement("weak", f"a loader's worker, process {min(held_up)}, works on one and the same sample", holds_up=True)
    if moved:
        return Judgement("strong", f"the program goes from line to line in process {moved[0]}")
    if any(_is_debugged(stacks) for stacks in lines_after.values()):
        return Judgement("strong", "somebody is at a debugger's prompt")
    spinning, computing = _who_computes(running, beats, lines_after)
    if computing:
        return computing
    if _samples(lines_after) != samples:
        return Judgement("strong", "a loader's worker goes from sample to sample")
    if _wakes(first, second) or _dozes(second):
        return Judgement("weak", "the main thread wakes up again and again", spinning, holds_up=bool(samples))
    return Judgement("none", spinning=spinning)


def _by_looks(first: Look, second: Look) -> Judgement | None:
    """What the system's own numbers say."""
    if set(first.processes) != set(second.processes):
        return Judgement("strong", "processes come and go")
    python = [(first.processes[pid], process) for pid, process in second.processes.items() if process.is_python]
    leaves = _leaves(second)
    if any(process.state in "Tt" for _, process in python):
        return Judgement("strong", "a process is stopped from outside")
    if sum(after.moved - before.moved for before, after in python) >= BYTES:
        return Judgement("strong", "data is read or written")
    if sum(after.faults - before.faults for before, after in python) >= PAGES:
        return Judgement("strong", "memory is taken")
    others = [process for process in second.processes.values() if not process.is_python]
    for process in [*leaves, *others]:
        main = process.main
        if main is not None and "nanosleep" in main.waits_in and main.switches == _switches(first, process):
            return Judgement("strong", "a process sleeps for a while, on purpose")
        if main is not None and main.waits_in in ("n_tty_read", "wait_woken") and _at_a_terminal(process):
            return Judgement("strong", "the program waits for its user at the terminal")
    return None


HELPERS = ("multiprocessing.resource_tracker", "multiprocessing.semaphore_tracker", "multiprocessing.forkserver")


def _leaves(look: Look) -> list[Process]:
    """Python processes that have none below them: a launcher only waits for its ranks, and looks again and again whether they live."""
    python = [
        process for process in look.processes.values()
        if process.is_python and not any(helper in word for word in process.command for helper in HELPERS)
    ]  # fmt: skip
    parents = {process.parent for process in python}
    return [process for process in python if process.pid not in parents]


def _switches(look: Look, process: Process) -> int:
    before = look.processes[process.pid].main
    return before.switches if before is not None else 0


def _at_a_terminal(process: Process) -> bool:
    """Whether its standard input is the terminal that it belongs to; another one has nobody in front of it."""
    try:
        return process.terminal != 0 and os.stat(f"/proc/{process.pid}/fd/0").st_rdev == process.terminal
    except OSError:
        return False


def _lines(look: Look, beats: Path | None) -> dict[int, Stacks]:
    return {pid: take(pid, beats, native=False) for pid, process in look.processes.items() if process.is_python}


def _main(stacks: Stacks, pid: int) -> ThreadSeen | None:
    return next((thread for thread in stacks.threads if thread.tid == pid), stacks.threads[-1] if stacks.threads else None)


def _changed(before: Stacks | None, after: Stacks, pid: int) -> bool:
    if before is None or not before.threads or not after.threads:
        return False
    return users_line(_main(before, pid)) != users_line(_main(after, pid))


def _is_debugged(stacks: Stacks) -> bool:
    return any(frame.file.endswith(DEBUGGERS) for thread in stacks.threads for frame in thread.frames if not frame.native)


def _pairs(first: Look, second: Look) -> list[tuple[Process, Thread, Thread]]:
    found = []
    for pid, process in second.processes.items():
        earlier = {thread.tid: thread for thread in first.processes[pid].threads}
        found += [(process, earlier[thread.tid], thread) for thread in process.threads if thread.tid in earlier]
    return found


def _running(first: Look, second: Look) -> dict[int, set[int]]:
    """Threads that use a core, by process."""
    span = max(second.at - first.at, 0.1)
    found: dict[int, set[int]] = {}
    for process, before, after in _pairs(first, second):
        if (after.cpu - before.cpu) / span >= BUSY or before.state == after.state == "R":
            found.setdefault(process.pid, set()).add(after.tid)
    return found


def _wakes(first: Look, second: Look) -> bool:
    leaves = {process.pid for process in _leaves(second)}
    return any(after.tid in leaves and after.switches - before.switches >= WAKES for _, before, after in _pairs(first, second))


def _dozes(look: Look) -> bool:
    """Whether a main thread sleeps in small pieces, as one does that asks again and again whether something is there."""
    return any(process.main is not None and "nanosleep" in process.main.waits_in for process in _leaves(look))


def _samples(lines: dict[int, Stacks]) -> dict[int, str]:
    """The sample that each worker of a data loader is fetching."""
    return {
        pid: sample_of(pid) for pid, stacks in lines.items() if (main := _main(stacks, pid)) is not None and is_fetching(main)
    }


def _who_computes(
    running: dict[int, set[int]], beats: Path | None, lines: dict[int, Stacks]
) -> tuple[frozenset[int], Judgement | None]:
    """Of the threads that run: those that only wait, going round in one place; or the sign of life that another one gives."""
    spinning: set[int] = set()
    for pid, tids in running.items():
        if pid not in lines:
            return frozenset(), Judgement("strong", f"process {pid} computes, which is not Python")
        dumps = [take(pid, beats)]
        if dumps[0].how != "native":
            return frozenset(), Judgement("weak", f"process {pid} runs, and without native frames one cannot see what it does")
        if any(_leaf_address(dumps[0], tid) is not None for tid in tids):
            dumps += [take(pid, beats) for _ in range(MORE_DUMPS)]
        for tid in tids:
            if _spins(dumps, tid):
                spinning.add(tid)
            elif _keeps_the_gil(dumps[0], tid) and _keeps_the_gil(take(pid, beats), tid):
                why = f"thread {tid} computes in native code and keeps the interpreter's lock"
                return frozenset(), Judgement("weak", why, holds_up=True)
            else:
                return frozenset(), Judgement("strong", f"thread {tid} of process {pid} computes")
    return frozenset(spinning), None


def _frames(stacks: Stacks, tid: int) -> tuple[Frame, ...]:
    return next((thread.frames for thread in stacks.threads if thread.tid == tid), ())


def _leaf_address(stacks: Stacks, tid: int) -> int | None:
    """The innermost frame's address, if it has no name: code that was generated while the program runs."""
    frames = _frames(stacks, tid)
    return int(frames[0].function, 16) if frames and _ADDRESS.match(frames[0].function) else None


def _spins(dumps: list[Stacks], tid: int) -> bool:
    frames = _frames(dumps[0], tid)
    if not frames:  # a thread without Python frames that py-spy does not list
        return any(thread.inside(*OPENMP) for thread in dumps[0].threads)
    if frames[0].native and frames[0].library.startswith(OPENMP):
        return True
    addresses = [_leaf_address(dump, tid) for dump in dumps]
    known = [address for address in addresses if address is not None]
    return len(known) == len(dumps) > 1 and max(known) - min(known) <= SPIN_RANGE


def _keeps_the_gil(stacks: Stacks, tid: int) -> bool:
    """Whether it runs native code with the lock held while another thread of Python's has to wait for it."""
    thread = next((thread for thread in stacks.threads if thread.tid == tid), None)
    if thread is None or not thread.gil or not thread.frames or not thread.frames[0].native:
        return False
    return any(other.starved for other in stacks.threads)
