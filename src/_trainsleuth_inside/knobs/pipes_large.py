"""Knob `pipes-large`: the pipes to and from child processes hold as much as the system allows, usually sixteen times the usual.

Changes        the capacity of the pipes that `subprocess.Popen` makes
Mechanism      a process that waits for somebody to read what it has written
Not applicable when no process is started with pipes, or the system knows no capacity of pipes
"""

from __future__ import annotations

import fcntl
import functools
import subprocess
from typing import Any

from _trainsleuth_inside.knobs.acting import says_early

SET_SIZE = 1031  # F_SETPIPE_SZ of Linux
LARGEST = "/proc/sys/fs/pipe-max-size"


def begin(facts: Any) -> None:
    acted = says_early(facts, "pipes-large")
    with open(LARGEST, encoding="ascii") as file:
        size = int(file.read())
    init = subprocess.Popen.__init__

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        for pipe in (self.stdin, self.stdout, self.stderr):
            if pipe is not None:
                fcntl.fcntl(pipe.fileno(), SET_SIZE, size)
                acted(size=size)

    subprocess.Popen.__init__ = __init__  # type: ignore[method-assign]
