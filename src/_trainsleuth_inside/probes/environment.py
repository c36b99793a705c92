"""Records what the program runs on: versions, threads, devices, and the switches of torch that change numbers."""

from __future__ import annotations

import os
import sys

from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.variables import that_are_set
from _trainsleuth_inside.watch import Watch


def install(watch: Watch, probe: Probe) -> None:
    torch = watch.torch
    record = probe.guard(lambda *_: _write(watch, torch))
    record()
    watch.facts.when_redirected.append(record)


def _write(watch: Watch, torch: object) -> None:
    watch.facts.write(
        "environment",
        torch=str(getattr(torch, "__version__", "?")),
        cuda=getattr(getattr(torch, "version", None), "cuda", None),
        threads=torch.get_num_threads(),  # type: ignore[attr-defined]
        cores=os.cpu_count(),
        platform=sys.platform,
        variables=that_are_set(),
    )
