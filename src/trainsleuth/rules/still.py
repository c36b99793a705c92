"""What rules about standstills share: who stands at the end of the chain, who waits for whom, and how to say where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Fork
from trainsleuth.case.run_chart import RunChart
from trainsleuth.case.standstill import Frame, ProcessSeen, Standstill, ThreadSeen, is_users, users_line
from trainsleuth.rules.kinds import Seen, Severity, Spot

WORKER_LOOP = "torch/utils/data/_utils/worker.py"
OPENMP = ("libgomp", "libomp", "libiomp5")
FOR_CHILDREN = ("popen_fork.py", "popen_spawn_posix.py", "popen_forkserver.py", "subprocess.py", "multiprocessing/process.py",
                "elastic/agent/server/api.py", "elastic/multiprocessing/api.py")  # fmt: skip
Held = tuple[ProcessSeen, ThreadSeen]


def end_of_chain(still: Standstill) -> list[Held]:
    """The main threads that do not themselves wait for another process of the run; those that train first."""
    found = [
        (process, process.main)
        for process in still.python()
        if process.main is not None and process.main.frames and not waits_for_children(process.main, _with_stacks_below(still, process.pid))
    ]
    return sorted(found, key=lambda held: (users_line(held[1]) is None, -held[0].backwards, held[0].rank or 0, held[0].pid))


def _with_stacks_below(still: Standstill, pid: int) -> list[ProcessSeen]:
    """The processes below one that were looked into; a decoder or a compiler has no lines to show, so whoever waits for it is the end."""
    found, waiting = [], still.children(pid)
    while waiting:
        process = waiting.pop()
        found += [process] if process.threads else []
        waiting += still.children(process.pid)
    return found


def waits_for_children(thread: ThreadSeen, children: Sequence[ProcessSeen]) -> bool:
    return bool(children) and any(frame.file.endswith(FOR_CHILDREN) for frame in thread.frames[:12] if not frame.native)


def in_file(thread: ThreadSeen, *endings: str) -> Frame | None:
    """The innermost Python frame of a file with one of these endings."""
    return next((frame for frame in thread.frames if not frame.native and frame.file.endswith(endings)), None)


def innermost_python(thread: ThreadSeen) -> Frame | None:
    return next((frame for frame in thread.frames if not frame.native), None)


def phase_of(process: ProcessSeen, thread: ThreadSeen) -> str:
    """Where in a step it stands, by its own stack, else by its heartbeat."""
    if in_file(thread, "torch/autograd/__init__.py", "torch/autograd/graph.py"):
        return "backward"
    if in_file(thread, "torch/utils/data/dataloader.py"):
        return "data"
    if in_file(thread, "torch/optim/optimizer.py"):
        return "step"
    if in_file(thread, "torch/nn/modules/module.py"):
        return "forward"
    return process.phase if process.phase in ("backward", "data") and not thread.frames else "outside"


def spots(still: Standstill, process: ProcessSeen, thread: ThreadSeen, note: str) -> list[Spot]:
    """The user's line that stands, and those that wait for its process."""
    found = [Spot(at, note)] if (at := users_line(thread)) else []
    above = still.process(process.parent)
    while above is not None:
        if above.main is not None and (at := users_line(above.main)):
            found.append(Spot(at, f"process {above.pid} waits for process {process.pid} here"))
        above = still.process(above.parent)
    return found


def native_path(thread: ThreadSeen, most: int = 4) -> str:
    """The native frames below the last Python line, innermost first, in words that fit a line."""
    names: list[str] = []
    for frame in thread.innermost_native():
        name = _short(frame.function) if not frame.function.startswith("0x") else "generated code"
        text = f"{name} ({frame.library})" if frame.library not in ("?", "") else name
        if name and not name.endswith("::") and text not in names:
            names.append(text)
    return " ← ".join(names[:most])


def _short(function: str) -> str:
    """A C++ name without its arguments and templates."""
    depth, kept = 0, []
    for letter in function.split("(")[0] if not function.startswith("(") else function:
        depth += letter == "<"
        if depth == 0:
            kept.append(letter)
        depth -= letter == ">"
    return "::".join("".join(kept).strip().split("::")[-2:])[-60:]


def runs(thread: ThreadSeen) -> bool:
    """Whether it uses a core, though nothing comes of it."""
    return thread.spins or thread.state == "R"


def how_it_waits(process: ProcessSeen, thread: ThreadSeen) -> str:
    """One line of evidence about one thread."""
    doing = "runs in circles" if runs(thread) else "waits"
    where = f" in {thread.waits_in}" if thread.waits_in and doing == "waits" else ""
    path = native_path(thread)
    inner = innermost_python(thread)
    at = f"; {_file(inner)}:{inner.line} {inner.function}" if inner is not None and not is_users(inner) else ""
    return f"{named(process)}, {thread.name or thread.tid}: {doing}{where}{': ' + path if path else ''}{at}"


def named(process: ProcessSeen) -> str:
    return f"rank {process.rank}" if process.rank is not None else f"process {process.pid}"


def _file(frame: Frame) -> str:
    return "/".join(frame.file.split("/")[-2:])


def missing(still: Standstill) -> list[str]:
    """What could not be seen, and what would help."""
    lacks = {process.missing for process in still.python() if process.missing}
    return [f"not seen: {text}; running as root, or with CAP_SYS_PTRACE, would show it" for text in sorted(lacks)[:1]]


def duration(still: Standstill) -> str:
    if still.attached:
        return "as long as we looked"
    return f"{still.waited:.0f} s" if still.waited < 120 else f"{still.waited / 60:.0f} min"


def severity(still: Standstill) -> Severity:
    return "critical" if still.recovered_after is None else "warning"


def ending(still: Standstill) -> list[str]:
    return [] if still.recovered_after is None else [f"after {still.recovered_after:.0f} s it went on"]


def variables(run: RunChart, process: ProcessSeen) -> dict[str, str]:
    """Environment variables as the process itself saw them when torch was imported, else as it was started."""
    chart = run.chart_of(process.pid) or run.chart_of(process.parent)
    own = chart.environment.get("variables", {}) if chart is not None else {}
    return {**process.environment, **own}


def chart_of(run: RunChart, process: ProcessSeen) -> ProcessChart | None:
    return run.chart_of(process.pid)


def about(still: Standstill, title: str, where: Iterable[Spot | None], evidence: Iterable[str], statement: str,
          advice: Sequence[str], process: ProcessSeen, certain: bool = True) -> Seen:  # fmt: skip
    return Seen(
        title=title, where=list(where), evidence=[*evidence, *missing(still), *ending(still)], severity=severity(still),
        statement=statement, advice=advice, step=process.windows or None, rank=process.rank, certain=certain,
    )  # fmt: skip


def fork_facts(run: RunChart, process: ProcessSeen) -> Fork | None:
    parent = run.chart_of(process.parent)
    return parent.forks[-1] if parent is not None and parent.forks else None


def is_worker(thread: ThreadSeen) -> bool:
    """Whether this is the main thread of a data loader's worker."""
    return in_file(thread, WORKER_LOOP) is not None


LOCK_CALLS = ("PyThread_acquire_lock", "acquire_timed", "lock_PyThread_acquire", "rlock_acquire", "PyMutex", "sem_wait", "sem_clockwait",
              "sem_timedwait", "do_futex_wait", "__new_sem_wait", "_PySemaphore")  # fmt: skip


def at_a_lock(thread: ThreadSeen) -> bool:
    """Whether it waits at a lock of Python's: by its native frames, or where there are none, by what the kernel says."""
    inner = thread.innermost_native()
    if inner:
        return any(name in frame.function for frame in inner[:6] for name in LOCK_CALLS)
    return thread.waits_in.startswith("futex") or (not thread.waits_in and thread.state in "?S")


JOINS = ("join", "_wait_for_tstate_lock")


def at_a_join(thread: ThreadSeen) -> bool:
    """Whether it waits for another thread to end."""
    return any(frame.file.endswith("threading.py") and frame.function.rpartition(".")[2] in JOINS for frame in thread.python()[:6])


def at_a_queue(thread: ThreadSeen) -> bool:
    """Whether it waits for an entry, a result or an event that another thread or process has to bring."""
    endings = ("/queue.py", "multiprocessing/queues.py", "multiprocessing/connection.py", "concurrent/futures/_base.py",
               "multiprocessing/pool.py", "multiprocessing/managers.py")  # fmt: skip
    python = thread.python()[:6]
    if any(frame.file.endswith(endings) for frame in python):
        return True
    return any(
        frame.file.endswith("threading.py") and frame.function.rpartition(".")[2] in ("wait", *JOINS) for frame in python
    )
