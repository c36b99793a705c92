"""Waits for the end of the program without waking up in between: it may have to share its core with us."""

from __future__ import annotations

import os
import select
import subprocess
from types import TracebackType

ASK_EVERY = 0.5


class Ending:
    """`subprocess` would ask twenty times a second. Where the kernel has no handle for processes, that has to do."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        self._bell, self._cord = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(self._cord, False)
        self._poll = select.poll()
        self._poll.register(self._bell, select.POLLIN)
        try:
            self._handle = os.pidfd_open(child.pid)
            self._poll.register(self._handle, select.POLLIN)
        except (AttributeError, OSError):
            self._handle = -1

    def __enter__(self) -> Ending:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, at: TracebackType | None) -> None:
        handles = (self._bell, self._cord, self._handle)
        self._bell = self._cord = self._handle = -1  # who rings late must not write into a file that has got the number since
        for handle in handles:
            if handle >= 0:
                os.close(handle)

    def ring(self) -> None:
        """Something else has happened: whoever waits for the end looks up. From any thread, and from a signal's handler."""
        try:
            os.write(self._cord, b"!")
        except OSError:  # it rings already, or nobody waits any more
            return

    def within(self, seconds: float) -> int | None:
        """The return code, or None if the program still runs after so many seconds, or if the bell rang."""
        if self._handle < 0:
            try:
                return self._child.wait(timeout=min(seconds, ASK_EVERY))
            except subprocess.TimeoutExpired:
                return None
        if any(handle == self._bell for handle, _ in self._poll.poll(1000 * seconds)):
            os.read(self._bell, 4096)
        return self._child.poll()
