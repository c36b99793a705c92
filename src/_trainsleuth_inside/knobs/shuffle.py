"""Knob `shuffle`: training data come in random order.

Changes        each DataLoader that goes through its data set in order gets a random sampler
Mechanism      classes per batch
Not applicable when the loaders shuffle already, have a sampler of their own, or the batches are cut by hand
"""

from __future__ import annotations

import functools
from typing import Any

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    data = watch.torch.utils.data
    base = data.DataLoader
    init = base.__init__
    acted = says(watch, "shuffle")

    @functools.wraps(init)
    def __init__(self: Any, dataset: Any, *args: Any, **options: Any) -> None:
        asked = args[1] if len(args) > 1 else options.get("shuffle")
        own = len(args) > 2 or options.get("sampler") is not None or options.get("batch_sampler") is not None
        if not asked and not own and not isinstance(dataset, data.IterableDataset):
            acted()
            args, options = args[:1], {**options, "shuffle": True}
        init(self, dataset, *args, **options)

    base.__init__ = __init__
