"""Knob `batch-size`: batches are larger or smaller by a factor.

Changes        `batch_size` of each DataLoader when it is built (at least 1)
Mechanism      samples per batch
Not applicable when the program makes its batches without a DataLoader, or by a batch sampler of its own
"""

from __future__ import annotations

import functools
from typing import Any

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any, factor: float = 0.5) -> None:
    base = watch.torch.utils.data.DataLoader
    init = base.__init__
    acted = says(watch, "batch-size")

    @functools.wraps(init)
    def __init__(self: Any, dataset: Any, *args: Any, **options: Any) -> None:
        before = args[0] if args else options.get("batch_size", 1)
        if isinstance(before, int) and options.get("batch_sampler") is None:
            size = max(1, round(before * factor))
            if size != before:
                acted(before=before, size=size)
            if args:
                args = (size, *args[1:])
            else:
                options["batch_size"] = size
        init(self, dataset, *args, **options)

    base.__init__ = __init__
