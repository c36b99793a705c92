"""Records by which line the number of threads is set."""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside import places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch


def install(watch: Watch, probe: Probe) -> None:
    torch = watch.torch
    original = torch.set_num_threads

    @stands_for(original)
    def set_num_threads(*args: Any, **kwargs: Any) -> None:
        original(*args, **kwargs)
        noted()

    @probe.guard
    def noted() -> None:
        count = torch.get_num_threads()
        watch.facts.once(("threads", count), "threads", count=count, at=places.caller(2))

    torch.set_num_threads = set_num_threads
