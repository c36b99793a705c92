"""Records where a process is forked, and which threads it had then: they do not exist in the child, but their locks do."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, List, Set

from _trainsleuth_inside import places
from _trainsleuth_inside.facts import FactWriter

MOST = 64
THREADED = ("tensorflow", "torch", "grpc", "cv2", "pyarrow", "numba", "jax", "ray", "wandb", "sklearn")


def install(facts: FactWriter) -> None:
    known: Set[Any] = set()

    def before() -> None:
        try:
            at = places.of_frame(sys._getframe(1))
            others = [thread for thread in threading.enumerate() if thread is not threading.current_thread()]
            key = (at, len(others))
            if key in known or len(known) >= MOST:
                return
            known.add(key)
            facts.write(
                "fork", at=at, python_threads=[_described(thread) for thread in others[:16]], native_threads=_threads(),
                libraries=[name for name in THREADED if name in sys.modules],
            )  # fmt: skip
        except Exception as problem:
            facts.write("probe_off", probe="forking", why=f"{type(problem).__name__}: {problem}"[:300])
            known.update(range(MOST))

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before)


def _threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _described(thread: threading.Thread) -> List[Any]:
    """Its name, and the line where its function begins."""
    target = getattr(thread, "_target", None) or type(thread).run
    code = getattr(target, "__code__", None)
    if code is None:
        return [thread.name, None]
    return [thread.name, [os.path.abspath(code.co_filename), code.co_firstlineno, code.co_name]]
