"""Knob `spawn`: processes that the program would fork are started anew.

Changes        the start method of `multiprocessing`, of `torch.multiprocessing` and of data loaders: `fork` and `forkserver` mean `spawn`
Mechanism      forks of a process that has other threads
Not applicable when the program calls `os.fork` itself, starts no process, or has something that cannot be pickled
"""

from __future__ import annotations

from multiprocessing import context
from typing import Any

from _trainsleuth_inside.knobs.acting import says_early


def begin(facts: Any) -> None:
    acted = says_early(facts, "spawn")
    inner: Any = context
    spawning = inner._concrete_contexts["spawn"]
    start = inner.SpawnProcess._Popen

    def popen(process: Any) -> Any:
        acted(process=type(process).__name__)
        return start(process)

    inner.SpawnProcess._Popen = staticmethod(popen)
    for name in ("fork", "forkserver"):
        inner._concrete_contexts[name] = spawning
    inner._default_context._default_context = spawning
