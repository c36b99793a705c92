"""Reads what faulthandler writes: the stacks of a process, and the crash that they tell of where a fault in native code ended it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from trainsleuth.case.reading import CHUNK, Fact
from trainsleuth.case.standstill import Frame, is_users

SIGNALS = {
    "Illegal instruction": "SIGILL", "Segmentation fault": "SIGSEGV", "Bus error": "SIGBUS", "Aborted": "SIGABRT",
    "Floating-point exception": "SIGFPE",
}  # fmt: skip
_NAMES = {"Floating point exception": "Floating-point exception"}
_HEAD = re.compile(r"Fatal Python error: (?P<what>[^\n]+)")
_THREAD = re.compile(r"^(?:Current t|T)hread (0x[0-9a-f]+)")
_FRAME = re.compile(r'^  File "(.+)", line (\d+) in (.+)$')


def stacks(text: str) -> list[tuple[int, list[Frame]]]:
    """Its threads, each with its frames, innermost first."""
    found: list[tuple[int, list[Frame]]] = []
    for line in text.splitlines():
        if head := _THREAD.match(line):
            found.append((int(head[1], 16), []))
        elif found and (frame := _FRAME.match(line)):
            found[-1][1].append(Frame(frame[3], frame[1], int(frame[2])))
    return found


def fatal(text: str) -> Fact | None:
    """The last fault in this text, as a fact."""
    heads = list(_HEAD.finditer(text))
    if not heads:
        return None
    what = heads[-1]["what"].strip()
    threads = [frames for _, frames in stacks(text[heads[-1].end() :])]
    lines = [[frame for frame in frames if is_users(frame)] for frames in threads]
    own = next((rows for rows in lines if rows), [])  # the thread at fault comes first; native threads have no lines, and then the others tell most
    inner = threads[0][0] if threads and threads[0] else None
    return ended_by(_NAMES.get(what, what), own, None if inner is None or inner in own else inner)


def ended_by(what: str, frames: Sequence[Frame] = (), inner: Frame | None = None) -> Fact:
    """The crash of a process that a fault in native code ended; `inner` is the library's line that called it."""
    name = SIGNALS.get(what, "")
    called = f", called from {inner.function} ({'/'.join(inner.file.split('/')[-3:])}:{inner.line})" if inner is not None else ""
    return {
        "k": "crash", "kind": what, "message": f"native code ended the process{f' ({name})' if name else ''}{called}", "native": True,
        "frames": [[frame.file, frame.line, frame.function] for frame in reversed(frames)],
    }  # fmt: skip


class LastWords:
    """Follows the files into which processes write their faults; most stay empty."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sizes: dict[Path, int] = {}

    def news(self) -> Iterator[tuple[int, Fact]]:
        """Each fault that was written since the last look, with the process that opened the file."""
        for path in sorted(self._folder.glob("*.fatal")):
            try:
                size = path.stat().st_size
                if size == self._sizes.get(path, 0) or not path.stem.isdigit():
                    continue
                self._sizes[path] = size
                fact = fatal(path.read_bytes()[-CHUNK:].decode("utf-8", "replace"))
            except OSError:
                continue
            if fact is not None:
                yield int(path.stem), fact
