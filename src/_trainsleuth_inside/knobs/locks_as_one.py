"""Knob `locks-as-one`: all locks that the program's own lines make are one, which a thread that holds it may take again.

Changes        what `threading.Lock()` and `threading.RLock()` give to the program's own code; queues, pools and libraries keep their own
Mechanism      locks that wait for each other
Not applicable when the program makes no lock, or gives a lock back in another thread than the one that took it
"""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable

from _trainsleuth_inside import places
from _trainsleuth_inside.knobs.acting import says_early


def begin(facts: Any) -> None:
    acted = says_early(facts, "locks-as-one")
    one = threading.RLock()

    def instead_of(original: Callable[..., Any]) -> Callable[..., Any]:
        def lock(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            if frame.f_code.co_filename == "<string>" and frame.f_back is not None:  # the __init__ that a dataclass writes
                frame = frame.f_back
            if places.kind_of(frame.f_code.co_filename) != places.USER:
                return original(*args, **kwargs)
            acted()
            return one

        return lock

    threading.Lock = instead_of(threading.Lock)  # type: ignore[assignment,misc]
    threading.RLock = instead_of(threading.RLock)  # type: ignore[assignment,misc]
