"""Notices that a run stands still, from its heartbeats and from outside, and records how every process stands.

How long is too long is learnt from the run: twice the longest pause it has made so far and gone on, and never less than a floor.
Time alone is no proof. When it is up, two looks from outside must find no sign of life either.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from trainsleuth.case.beats import Beat, read_beats
from trainsleuth.case.standstill import ProcessSeen, Standstill, ThreadSeen
from trainsleuth.supervise.life import OPENMP, judge
from trainsleuth.supervise.processes import Process, below, environment_of, is_alive, libraries_of, look
from trainsleuth.supervise.stacks import is_fetching, sample_of, take

FLOOR = 10.0
MOST = 1800.0
WEAK = 6.0  # weak signs of life are believed for so many times the patience that was learnt
WEAK_SECONDS = 7.0  # and for so long beyond one that the user has set
ASLEEP = 5.0  # seconds between two looks that mean that we, or the machine, did not run
MOST_STACKS = 24
VARIABLES = ("OMP_", "MKL_", "KMP_", "GOMP_", "NCCL_", "GLOO_", "TORCH_", "TF_", "CUDA_VISIBLE_DEVICES", "LD_PRELOAD")


def can_look() -> bool:
    """Whether this system shows processes from outside as Linux does."""
    return Path("/proc/self/stat").exists()


@dataclass(frozen=True)
class News:
    kind: Literal["standstill", "recovered"]
    standstill: Standstill


class StandstillWatch:
    """Follows the heartbeats of one run; `news` is to be called about once a second."""

    def __init__(self, root: int, beats: Path, patience: float | None) -> None:
        self._root = root
        self._beats = beats
        self._fixed = patience
        self._signatures: dict[int, tuple[Any, ...]] = {}
        self._changed = self._looked = time.monotonic()
        self._longest = 0.0
        self._known: Standstill | None = None
        self._stop = threading.Event()

    def stop(self) -> None:
        """Give up a look that is under way."""
        self._stop.set()

    @property
    def patience(self) -> float:
        return self._fixed if self._fixed is not None else min(MOST, max(FLOOR, 2 * self._longest))

    @property
    def _weak_until(self) -> float:
        return self._fixed + WEAK_SECONDS if self._fixed is not None else WEAK * self.patience

    def pids(self) -> list[int]:
        known = [beat.pid for beat in read_beats(self._beats) if is_alive(beat.pid)]
        return below([self._root, *known], but=[os.getpid()])

    def news(self) -> News | None:
        now = time.monotonic()
        if now - self._looked > ASLEEP:  # we were stopped, or the machine slept
            self._changed = now
        self._looked = now
        if self._progressed():
            pause, self._changed = now - self._changed, now
            self._longest = max(self._longest, pause)
            if self._known is not None:
                went_on = Standstill(
                    self._known.since, self._known.waited, self._known.processes, self._known.machine,
                    recovered_after=time.time() - self._known.since,
                )  # fmt: skip
                self._known = None
                return News("recovered", went_on)
            return None
        if self._known is not None or now - self._changed < self.patience or not self._signatures:
            return None
        return self._look_closely()

    def _progressed(self) -> bool:
        found = {
            beat.pid: (beat.phase, beat.windows, beat.backwards, beat.collectives, beat.in_collective, beat.since)
            for beat in read_beats(self._beats)
            if beat.phase != "ended" and is_alive(beat.pid)
        }
        changed = found != self._signatures
        self._signatures = found
        return changed

    def _look_closely(self) -> News | None:
        found = judge(self.pids, self._beats, self._stop.wait)
        self._looked = time.monotonic()
        quiet = self._looked - self._changed
        if self._stop.is_set() or (self._progressed() and self._note_progress()):
            return None
        if found.life == "strong" or (found.life == "weak" and quiet < self._weak_until):
            if found.life == "strong":
                self._note_progress()
            return None
        self._known = self.see(found.spinning)
        return News("standstill", self._known)

    def quiet_for_long(self) -> bool:
        return time.monotonic() - self._changed > max(FLOOR / 2, 2 * self._longest)

    def stands_now(self) -> Standstill | None:
        """Without regard to patience: how it stands, if two looks find no life."""
        if self._progressed():
            return None
        found = judge(self.pids, self._beats)
        return None if found.life != "none" or self._progressed() else self.see(found.spinning)

    def _note_progress(self) -> bool:
        self._changed = time.monotonic()
        return True

    def see(self, spinning: frozenset[int] = frozenset()) -> Standstill:
        """Everything that can be known from outside, now."""
        return see(self.pids(), self._beats, time.monotonic() - self._changed, spinning)


def see(
    pids: list[int], beats: Path | None, quiet: float, spinning: frozenset[int] = frozenset(), attached: bool = False
) -> Standstill:
    pages = {beat.pid: beat for beat in read_beats(beats)} if beats is not None else {}
    seen = []
    first = {pid: process for pid in pids if (process := look(pid)) is not None}
    began = time.monotonic()
    for count, (pid, process) in enumerate(first.items()):
        seen.append(_seen(process, pages.get(pid), beats, spinning, count < MOST_STACKS, first))
    span = max(time.monotonic() - began, 0.2)
    for index, known in enumerate(seen):
        seen[index] = _with_shares(known, first[known.pid], look(known.pid), span)
    return Standstill(time.time() - quiet, quiet, tuple(seen), _machine(), attached=attached)


def _seen(
    process: Process, beat: Beat | None, beats: Path | None, spinning: frozenset[int], stacks: bool, others: dict[int, Process]
) -> ProcessSeen:
    found = take(process.pid, beats) if stacks and (process.is_python or beat is not None) else None
    by_tid = {thread.tid: thread for thread in process.threads}
    threads = []
    for thread in found.threads if found else ():
        known = by_tid.pop(thread.tid, None)
        threads.append(ThreadSeen(
            thread.tid, thread.name, thread.frames[:60], thread.gil, known.state if known else "?",
            known.waits_in if known else "", spins=thread.tid in spinning,
        ))  # fmt: skip
    if found and found.threads:
        threads += [
            ThreadSeen(t.tid, t.name, state=t.state, waits_in=t.waits_in, spins=t.tid in spinning) for t in by_tid.values()
        ][:128]
    environment = {
        k: v[:200] for k, v in environment_of(process.pid).items() if k.startswith(VARIABLES) or k in ("RANK", "WORLD_SIZE")
    }
    rank = environment.get("RANK", "")
    parent = others.get(process.parent)
    return ProcessSeen(
        process.pid, process.parent, process.command[:16], process.state, tuple(threads), found.how if found else "",
        found.missing if found else "", int(rank) if rank.isdigit() else None,
        beat.phase if beat else "", beat.windows if beat else 0, beat.backwards if beat else 0,
        forked=parent is not None and parent.command == process.command,
        openmp=tuple(path for path in libraries_of(process.pid) if os.path.basename(path).startswith(OPENMP)),
        environment=environment, sample=sample_of(process.pid) if any(map(is_fetching, threads)) else "", collectives=beat.collectives if beat else 0,
        in_collective=beat.in_collective if beat else False, latest=beat.latest if beat else (), native=beat.native if beat else 0,
        waits_in=process.main.waits_in if process.main is not None else "",
    )  # fmt: skip


def _with_shares(seen: ProcessSeen, before: Process, after: Process | None, span: float) -> ProcessSeen:
    """The same with the share of a core that each thread used meanwhile."""
    if after is None:
        return seen
    used = {thread.tid: thread.cpu for thread in after.threads}
    earlier = {thread.tid: thread.cpu for thread in before.threads}
    threads = tuple(
        ThreadSeen(t.tid, t.name, t.frames, t.gil, t.state, t.waits_in,
                   round(max(0.0, used.get(t.tid, 0.0) - earlier.get(t.tid, 0.0)) / span, 2), t.spins)
        for t in seen.threads
    )  # fmt: skip
    return ProcessSeen(**{**seen.__dict__, "threads": threads})


def _machine() -> dict[str, Any]:
    """What may have run out."""
    found: dict[str, Any] = {"cores": os.cpu_count()}
    for name, path in (("shm_free", "/dev/shm"), ("disk_free", os.getcwd())):
        try:
            found[name] = shutil.disk_usage(path).free
        except OSError:
            continue
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable"):
                found["memory_free"] = int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return found


def end_all(pids: Callable[[], list[int]], ask: bool = True, grace: float = 3.0) -> None:
    """End these processes and all below them: asked first, then made to. Returns when none is left."""
    import signal

    deadline = time.monotonic() + (grace if ask else 0.0)
    if ask:
        _send_all(pids(), signal.SIGTERM)
        while time.monotonic() < deadline and any(map(is_alive, pids())):
            time.sleep(0.1)
    for _ in range(50):
        left = [pid for pid in pids() if is_alive(pid)]
        if not left:
            return
        _send_all(left, signal.SIGKILL)
        time.sleep(0.1)


def _send_all(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue
