"""Runs a command so that nothing it writes reaches the user's files, and nothing of it is left when it has ended.

Every file system is seen through an overlay in memory (`enclosure.py`); the trial's own folder alone is real. The processes live
in a namespace of their own and die together. Where the system forbids namespaces, `available()` says why, and the only
other way is a copy of the working folder, which the user must ask for.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

OUTPUT_KEPT = 512 * 1024  # bytes at each end of what the program prints
LOOK_EVERY = 0.2
WEIGH_EVERY = 1.0
MOST_COPIED = 2 * 1024**3
NEVER_COPIED = (".git", ".trainsleuth", ".venv", "venv", "__pycache__", "node_modules", "wandb", "mlruns")
OFFLINE = {
    "WANDB_MODE": "offline",
    "WANDB_SILENT": "true",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "COMET_MODE": "offline",
    "NEPTUNE_MODE": "offline",
    "CLEARML_OFFLINE_MODE": "1",
}


class SandboxError(Exception):
    """The sandbox itself could not be made; the message is for the user."""


class Cancelled(Exception):
    """The run was called off; nothing of it is left."""


@dataclass(frozen=True)
class Ended:
    """How a command in the sandbox ended: by itself (`exit`, negative for a signal), or because its time or memory was used up."""

    kind: Literal["exit", "time", "memory"]
    code: int | None
    seconds: float


@dataclass(frozen=True)
class Job:
    """A command, the folder it may really write to, and the files that it finds changed."""

    command: Sequence[str]
    cwd: Path
    keep: Path
    seconds: float
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    files: Mapping[Path, bytes] = field(default_factory=dict)
    gone: Sequence[Path] = ()  # files that it does not find
    memory: int = 0  # bytes that its processes may use together; 0: no limit
    own_network: bool = False  # ports of its own, and no way out: for programs whose ranks talk to each other


@functools.cache
def available() -> str | None:
    """None when programs can be sandboxed here; otherwise the reason why not."""
    if not sys.platform.startswith("linux"):
        return f"overlay mounts are a Linux feature, and this is {sys.platform}"
    with tempfile.TemporaryDirectory(prefix="trainsleuth-") as folder:
        try:
            ended = run(Job(["/bin/sh", "-c", "exit 7"], Path(folder), Path(folder), 20.0))
        except SandboxError as problem:
            return str(problem)
    return None if ended.code == 7 else f"a test command ended with {ended}"


def refusal(reason: str) -> str:
    """What the user is told when there is no sandbox."""
    return (
        "A trial runs your program again, and this system does not allow the sandbox that keeps its writes away from your "
        f"files: {reason}. With --unsafe it runs in a copy of the working folder instead: files that it names by a relative "
        "path are safe, but what it writes elsewhere (absolute paths, home folder, caches) is really written."
    )


def run(job: Job, *, unsafe: bool = False, cancel: threading.Event | None = None) -> Ended:
    """Run the job to its end or to its time limit; what it prints is in `output.txt` of the kept folder."""
    if not unsafe:
        return _enclosed(job, True, cancel or threading.Event())
    with _copied(job) as moved:
        return _enclosed(moved, False, cancel or threading.Event())


def _enclosed(job: Job, overlay: bool, cancel: threading.Event) -> Ended:
    began = time.monotonic()
    keep = job.keep.resolve()
    keep.mkdir(parents=True, exist_ok=True)
    base = tempfile.mkdtemp(prefix="trainsleuth-sandbox-")
    try:
        plan = {
            "overlay": overlay,
            "base": os.path.realpath(base),
            "keep": str(keep),
            "cwd": str(job.cwd),
            "command": list(job.command),
            "environment": {**job.environment, **OFFLINE, **_scratch(base)},
            "files": {str(path): base64.b64encode(content).decode() for path, content in job.files.items()},
            "gone": [str(path) for path in job.gone],
            "own_network": job.own_network,
        }
        return _supervise(plan, keep / "output.txt", began + job.seconds, began, cancel, job.memory)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _scratch(base: str) -> dict[str, str]:
    return {"MLFLOW_TRACKING_URI": f"file://{base}/mlruns", "WANDB_DIR": base}


def _supervise(
    plan: dict[str, Any], output: Path, deadline: float, began: float, cancel: threading.Event, memory: int
) -> Ended:
    plan_out, plan_in = os.pipe()
    report_out, report_in = os.pipe()
    shim = [sys.executable, "-I", "-S", str(Path(__file__).with_name("enclosure.py")), str(plan_out), str(report_in)]
    process = subprocess.Popen(
        shim, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=(plan_out, report_in),
        start_new_session=True, cwd="/",
    )  # fmt: skip
    os.close(plan_out)
    os.close(report_in)
    assert process.stdout is not None
    reports = _Reports(report_out)
    copier = threading.Thread(target=_keep_both_ends, args=(process.stdout, output), daemon=True)
    copier.start()
    try:
        with os.fdopen(plan_in, "wb") as pipe:
            pipe.write(json.dumps(plan).encode())
        kind = _wait(process, deadline, cancel, memory)
    finally:
        _end(process, plan["overlay"])
        copier.join(5)
        reports.join(5)
    seconds = time.monotonic() - began
    if "error" in reports.last:
        raise SandboxError(reports.last["error"])
    if kind == "exit" and "exit" not in reports.last:
        raise SandboxError("the sandbox's first process was killed from outside")
    return Ended(kind, reports.last.get("exit"), seconds)


def _wait(
    process: subprocess.Popen[bytes], deadline: float, cancel: threading.Event, memory: int
) -> Literal["exit", "time", "memory"]:
    weighed = time.monotonic()
    while True:
        left = deadline - time.monotonic()
        try:
            process.wait(max(0.0, min(left, LOOK_EVERY)))
            return "exit"
        except subprocess.TimeoutExpired:
            if cancel.is_set():
                raise Cancelled from None
            if left <= 0:
                return "time"
            if memory and time.monotonic() - weighed > WEIGH_EVERY:
                weighed = time.monotonic()
                if _memory_of(process.pid) > memory:
                    return "memory"


def _memory_of(root: int) -> int:
    """Bytes that the processes below this one hold, each page shared by several counted once."""
    from trainsleuth.trials.enclosure import descendants

    total = 0
    for pid in descendants(root):
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                total += next(int(line.split()[1]) * 1024 for line in file if line.startswith(b"Pss:"))
        except (OSError, StopIteration, ValueError):
            continue
    return total


def _end(process: subprocess.Popen[bytes], overlay: bool) -> None:
    """Kill what is left; with a process namespace the death of its first process is the death of all."""
    if process.poll() is None:
        if not overlay:
            from trainsleuth.trials.enclosure import descendants

            for pid in descendants(process.pid):
                _kill(pid)
        else:
            _kill(process.pid)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        _kill(process.pid)
        process.wait(10)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class _Reports(threading.Thread):
    """Reads what the first process of the sandbox has to say."""

    def __init__(self, pipe: int) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self.last: dict[str, Any] = {}
        self.start()

    def run(self) -> None:
        with os.fdopen(self._pipe, "rb") as lines:
            for line in lines:
                self.last.update(json.loads(line))


def _keep_both_ends(source: IO[bytes], output: Path) -> None:
    """Copy what the program prints: its beginning as it comes, its end when all is over, the middle not at all."""
    head, tail, left_out = 0, b"", 0
    with source, open(output, "wb") as file:
        while chunk := source.read1(65536):  # type: ignore[attr-defined]
            if head < OUTPUT_KEPT:
                file.write(chunk)
                file.flush()
                head += len(chunk)
                continue
            tail += chunk
            if len(tail) > 2 * OUTPUT_KEPT:
                left_out += len(tail) - OUTPUT_KEPT
                tail = tail[-OUTPUT_KEPT:]
        if left_out:
            file.write(f"\n[… {left_out} bytes left out …]\n".encode())
        file.write(tail)


@contextmanager
def _copied(job: Job) -> Iterator[Job]:
    """The same job in a copy of its working folder; paths into that folder lead to the copy."""
    origin = job.cwd.resolve()
    size = _size(origin)
    if size > MOST_COPIED:
        raise SandboxError(f"the working folder {origin} holds {size / 1e9:.1f} GB; a copy for --unsafe is limited to 2 GB")
    with tempfile.TemporaryDirectory(prefix="trainsleuth-copy-") as folder:
        copy = Path(folder).resolve() / (origin.name or "root")
        shutil.copytree(origin, copy, symlinks=True, ignore=shutil.ignore_patterns(*NEVER_COPIED))

        def there(text: str) -> str:
            moved = str(copy) + text[len(str(origin)) :]
            return moved if (text + "/").startswith(f"{origin}/") and os.path.lexists(moved) else text

        environment = {
            name: ":".join(map(there, value.split(":"))) if not name.startswith("TRAINSLEUTH") else value
            for name, value in job.environment.items()
        }
        knobs = environment.get("TRAINSLEUTH_KNOBS", "")
        environment["TRAINSLEUTH_KNOBS"] = knobs.replace(f'"{origin}/', f'"{copy}/')
        outside = [str(path) for path in job.files if not path.resolve().is_relative_to(origin)]
        if outside:
            raise SandboxError(f"{outside[0]} is outside of the working folder: without a sandbox the patch cannot be tried")
        yield Job(
            command=[there(part) for part in job.command],
            cwd=copy,
            keep=job.keep,
            seconds=job.seconds,
            environment=environment,
            files={copy / path.resolve().relative_to(origin): content for path, content in job.files.items()},
            gone=[copy / path.resolve().relative_to(origin) for path in job.gone if path.resolve().is_relative_to(origin)],
            memory=job.memory,
        )


def _size(folder: Path) -> int:
    total = 0
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in NEVER_COPIED]
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size
            except OSError:
                pass
    return total
