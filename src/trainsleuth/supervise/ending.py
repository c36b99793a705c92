"""Waits for the end of the program without waking up in between: it may have to share its core with us."""

from __future__ import annotations

import os
import select
import subprocess
from types import TracebackType


class Ending:
    """`subprocess` would ask twenty times a second. Where the kernel has no handle for processes, that has to do."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        try:
            self._handle = os.pidfd_open(child.pid)
        except (AttributeError, OSError):
            self._handle = -1

    def __enter__(self) -> Ending:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, at: TracebackType | None) -> None:
        if self._handle >= 0:
            os.close(self._handle)

    def within(self, seconds: float) -> int | None:
        """The return code, or None if the program still runs after so many seconds."""
        if self._handle >= 0:
            poll = select.poll()
            poll.register(self._handle, select.POLLIN)
            poll.poll(1000 * seconds)
            return self._child.poll()
        try:
            return self._child.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
