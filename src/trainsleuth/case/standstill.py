"""A standstill as it was seen from outside: every process of the run, every thread, its frames and what it waits for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from trainsleuth.case.entries import Place

INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Frame:
    function: str
    file: str  # of a native frame: its library, or ? where there is none
    line: int  # 0 in native code

    @property
    def native(self) -> bool:
        return not self.file.endswith((".py", ".pyx", ".ipynb")) and not self.file.startswith("<")

    @property
    def library(self) -> str:
        """Of a native frame: the name of its library without folder and version, as in `libgomp`."""
        return self.file.rsplit("/", 1)[-1].split(".so")[0].split("-")[0]


@dataclass(frozen=True)
class ThreadSeen:
    """One thread, innermost frame first."""

    tid: int
    name: str
    frames: tuple[Frame, ...] = ()
    gil: bool = False
    state: str = "?"
    waits_in: str = ""  # the kernel function it waits in, where the system tells
    cpu: float = 0.0  # share of one core
    spins: bool = False  # it runs, and has been seen to go round in one place

    def inside(self, *libraries: str) -> bool:
        return any(frame.native and frame.library.startswith(libraries) for frame in self.frames)

    def calls(self, *functions: str) -> bool:
        """Whether a function of one of these names is running; a name may be a part of a native one."""
        return any(name in frame.function for frame in self.frames for name in functions)

    @property
    def starved(self) -> bool:
        """Whether it waits for the interpreter's lock: in native code below a line of Python, and at no other lock."""
        inner = [frame.function for frame in self.innermost_native()]
        if self.gil or any("acquire" in name or "sem_" in name for name in inner):
            return False
        return any("take_gil" in name or "pthread_cond_timedwait" in name for name in inner)

    def python(self) -> list[Frame]:
        return [frame for frame in self.frames if not frame.native]

    def innermost_native(self) -> list[Frame]:
        """The native frames below the innermost Python line."""
        found = []
        for frame in self.frames:
            if not frame.native:
                break
            found.append(frame)
        return found


@dataclass(frozen=True)
class ProcessSeen:
    pid: int
    parent: int
    command: tuple[str, ...] = ()
    state: str = "?"
    threads: tuple[ThreadSeen, ...] = ()
    how: str = ""  # how its stacks were taken: native, python, faulthandler, or not at all
    missing: str = ""
    rank: int | None = None
    phase: str = ""  # what its heartbeat said last
    windows: int = 0
    backwards: int = 0
    forked: bool = False  # runs the same program as its parent, without having been started anew
    openmp: tuple[str, ...] = ()  # OpenMP runtimes it has loaded
    environment: dict[str, str] = field(default_factory=dict)
    sample: str = ""  # of a data loader's worker: the index that it is fetching
    collectives: int = 0  # how many it has entered
    in_collective: bool = False
    latest: tuple[tuple[int, int, str], ...] = ()  # of the latest: count, number of the place, shape
    native: int = 0  # by the process group's own count, after the latest backward
    waits_in: str = ""  # the kernel function its main thread waits in, where the system tells

    @property
    def main(self) -> ThreadSeen | None:
        return next((thread for thread in self.threads if thread.tid == self.pid), self.threads[-1] if self.threads else None)


@dataclass(frozen=True)
class Standstill:
    since: float  # by the clock on the wall
    waited: float  # seconds without progress when this was seen
    processes: tuple[ProcessSeen, ...] = ()
    machine: dict[str, Any] = field(default_factory=dict)
    recovered_after: float | None = None
    attached: bool = False

    def python(self) -> list[ProcessSeen]:
        return [process for process in self.processes if process.threads]

    def process(self, pid: int) -> ProcessSeen | None:
        return next((process for process in self.processes if process.pid == pid), None)

    def children(self, pid: int) -> list[ProcessSeen]:
        return [process for process in self.processes if process.parent == pid]

    def all_threads(self) -> Iterator[tuple[ProcessSeen, ThreadSeen]]:
        for process in self.processes:
            for thread in process.threads:
                yield process, thread


def is_users(frame: Frame) -> bool:
    """Whether a Python frame is of the user's own code: neither Python's, nor a library's, nor ours."""
    parts = frame.file.split("/")
    if frame.native or frame.file.startswith("<") or any(part in parts for part in INSTALLED) or "_trainsleuth_inside" in parts:
        return False
    standard = any(part.startswith("python3.") and before in ("lib", "lib64") for before, part in pairwise(parts))
    return frame.file.startswith("/") and not standard


def users_line(thread: ThreadSeen | None) -> Place | None:
    """The innermost line of the user's own code in a thread."""
    frame = next((frame for frame in thread.frames if is_users(frame)), None) if thread is not None else None
    return Place(frame.file, frame.line, frame.function) if frame is not None else None


def to_fact(standstill: Standstill) -> dict[str, Any]:
    return asdict(standstill)


def from_fact(fact: dict[str, Any]) -> Standstill:
    """A standstill as it stands in a fact file; one that is not whole raises KeyError or TypeError."""
    processes = tuple(
        ProcessSeen(**{
            **process, "command": tuple(process["command"]), "openmp": tuple(process["openmp"]),
            "latest": tuple(tuple(row) for row in process["latest"]),
            "threads": tuple(
                ThreadSeen(**{**thread, "frames": tuple(Frame(**frame) for frame in thread["frames"])})
                for thread in process["threads"]
            ),
        })
        for process in fact["processes"]
    )  # fmt: skip
    return Standstill(
        fact["since"], fact["waited"], processes, fact["machine"], fact.get("recovered_after"), fact.get("attached", False)
    )
