"""Knob `workers`: data loaders have so many worker processes, by default none.

Changes        `num_workers` of each DataLoader when it is built; what only makes sense with workers is left out when there are none
Mechanism      worker processes of the data loaders
Not applicable when each loader has that number already
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from _trainsleuth_inside.knobs.acting import says

ONLY_WITH_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout", "worker_init_fn")


def _as_if_in_a_worker(dataset: Any) -> None:
    """A data set that asks which worker it is in hears: the only one."""
    worker: Any = importlib.import_module("torch.utils.data._utils.worker")
    if worker._worker_info is None:
        worker._worker_info = worker.WorkerInfo(id=0, num_workers=1, seed=0, dataset=dataset)


def turn(watch: Any, count: int = 0) -> None:
    base = watch.torch.utils.data.DataLoader
    init = base.__init__
    acted = says(watch, "workers")

    @functools.wraps(init)
    def __init__(self: Any, dataset: Any, *args: Any, **options: Any) -> None:
        position = 4  # of num_workers behind the data set
        before = args[position] if len(args) > position else options.get("num_workers", 0)
        if before != count:
            acted(before=before, count=count)
            if len(args) > position:
                args = (*args[:position], count, *args[position + 1 :])
            else:
                options["num_workers"] = count
            if count == 0:
                _as_if_in_a_worker(dataset)
                options = {name: value for name, value in options.items() if name not in ONLY_WITH_WORKERS}
        init(self, dataset, *args, **options)

    base.__init__ = __init__
