"""Knob `locks-free-at-fork`: a fork waits until no other thread holds a lock, so that the child gets all of them open.

Changes        before each fork of a process, every lock that `threading` has given out (queues and conditions hold such locks, too) is taken,
               and given back behind it in parent and child
Mechanism      locks that another thread holds while the process forks
Not applicable when the program forks nothing, or no lock was made before
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Any, Callable, List

from _trainsleuth_inside.knobs.acting import says_early

LONGEST = 3.0  # seconds for all locks: one that the forking thread holds itself never comes free, and is waited for once
PAUSE = 0.001


def begin(facts: Any) -> None:
    acted = says_early(facts, "locks-free-at-fork")
    made: Any = weakref.WeakSet()
    stubborn: Any = weakref.WeakSet()
    taken: List[Any] = []

    def counted(original: Callable[..., Any]) -> Callable[..., Any]:
        def lock(*args: Any, **kwargs: Any) -> Any:
            new = original(*args, **kwargs)
            made.add(new)
            return new

        return lock

    def take() -> None:
        left, held, until = list(made), 0, time.monotonic() + LONGEST
        while left:
            closed = [lock for lock in left if not lock.acquire(False)]
            taken.extend(lock for lock in left if lock not in closed)
            held = held or len(closed)
            if all(lock in stubborn for lock in closed) or time.monotonic() > until:
                stubborn.update(closed)
                break
            left = closed
            time.sleep(PAUSE)
        if taken:
            acted(locks=len(taken), held=held)

    def give_back() -> None:
        while taken:
            try:
                taken.pop().release()
            except RuntimeError:
                pass  # Python itself has made it anew in the child

    threading.Lock = counted(threading.Lock)  # type: ignore[assignment,misc]
    threading.RLock = counted(threading.RLock)  # type: ignore[assignment,misc]
    os.register_at_fork(before=take, after_in_parent=give_back, after_in_child=give_back)
