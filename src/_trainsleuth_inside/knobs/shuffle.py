"""Knob `shuffle`: training data come in random order.

Changes        each DataLoader that goes through its data set in order gets a random sampler; what a sampler of the program's own gives is
               shuffled, and comes in batches of the same lengths
Mechanism      classes per batch
Not applicable when the loaders shuffle already, or the batches are cut by hand
"""

from __future__ import annotations

import functools
import itertools
import random
from typing import Any, Callable, Iterator

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
        for name in ("sampler", "batch_sampler"):
            sampler = options.get(name)
            if hasattr(sampler, "__len__") and _in_order(data, sampler):
                options = {**options, name: Shuffled(sampler, name == "batch_sampler", acted)}
        init(self, dataset, *args, **options)

    base.__init__ = __init__


def _in_order(data: Any, sampler: Any) -> bool:
    """Whether a sampler goes through the data in order, or in an order of the program's own."""
    while type(sampler) is data.BatchSampler:
        sampler = sampler.sampler
    return type(sampler) is data.SequentialSampler or not type(sampler).__module__.startswith("torch.")


class Shuffled:
    """What another sampler gives, in random order; it draws no random number of the program's."""

    def __init__(self, sampler: Any, in_batches: bool, acted: Callable[[], None]) -> None:
        self._sampler, self._in_batches, self._acted = sampler, in_batches, acted
        self._chance = random.Random(0)

    def __iter__(self) -> Iterator[Any]:
        given = list(itertools.islice(self._sampler, len(self._sampler)))  # some never end
        batches = [list(batch) for batch in given] if self._in_batches else [given]
        indices = [index for batch in batches for index in batch]
        self._chance.shuffle(indices)
        self._acted()
        if not self._in_batches:
            yield from indices
            return
        for batch in batches:
            yield indices[: len(batch)]
            del indices[: len(batch)]

    def __len__(self) -> int:
        return len(self._sampler)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sampler, name)
