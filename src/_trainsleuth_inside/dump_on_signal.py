"""Lets the supervisor ask for the Python stacks where it has no right to look into the process itself.

On a real-time signal that programs hardly use, faulthandler writes the stacks to a file. That works with the interpreter's lock held
by native code, too. Children that are forked write to their parent's file.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from typing import Any, List

_kept: List[Any] = []  # faulthandler does not keep the file open itself


def install(folder: str) -> None:
    first = getattr(signal, "SIGRTMIN", None)
    if first is None:
        return
    number = int(first) + 9
    try:
        if signal.getsignal(number) is not signal.SIG_DFL:
            return
        file = open(  # noqa: SIM115 (it stays open: faulthandler writes to it)
            os.path.join(folder, f"{os.getpid()}-{id(_kept):x}.stack"), "ab", buffering=0
        )
        faulthandler.register(number, file=file, all_threads=True, chain=False)
    except (OSError, ValueError, RuntimeError):
        return
    _kept.append((os.getpid(), file))


def remove() -> None:
    """Take the file away if nothing was written to it."""
    while _kept:
        pid, file = _kept.pop()
        try:
            if pid == os.getpid() and os.path.getsize(file.name) == 0:
                os.unlink(file.name)
        except OSError:
            continue
