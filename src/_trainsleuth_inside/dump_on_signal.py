"""Python stacks written by faulthandler: when the supervisor asks for them, and when a fault in native code ends the process.

The supervisor asks by a real-time signal that programs hardly use, where it has no right to look into the process itself. That works with the
interpreter's lock held by native code, too. A child that is forked writes to its parent's files until it has facts of its own. Whoever has
switched faulthandler on keeps it: what is printed then is not ours to take away.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from typing import Any, List

_kept: List[Any] = []  # faulthandler does not keep the file open itself
_enable = faulthandler.enable
_on_faults = False  # it was us who switched it on


def on_a_fault(folder: str) -> None:
    """Let the line be known at which a segmentation fault, an illegal instruction, a bus error or an abort ends the process."""
    global _on_faults
    if faulthandler.is_enabled() != _on_faults:
        return
    try:
        file = open(os.path.join(folder, f"{os.getpid()}.fatal"), "ab", buffering=0)  # noqa: SIM115 (it stays open)
        _enable(file=file, all_threads=True)
    except (OSError, ValueError, RuntimeError):
        return
    _on_faults = True
    faulthandler.enable = _enabled_by_the_program
    _kept.append((os.getpid(), file))


def _enabled_by_the_program(*args: Any, **kwargs: Any) -> Any:
    global _on_faults
    result = _enable(*args, **kwargs)
    _on_faults = False
    return result


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
    """Take the files away to which nothing was written."""
    while _kept:
        pid, file = _kept.pop()
        try:
            if pid == os.getpid() and os.path.getsize(file.name) == 0:
                os.unlink(file.name)
        except OSError:
            continue
