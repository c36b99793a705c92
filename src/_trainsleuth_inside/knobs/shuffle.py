"""Knob `shuffle`: training data come in random order.

Changes        each DataLoader that goes through its data set in order gets a random sampler; what a sampler of the program's own gives is
               shuffled, and comes in batches of the same lengths. The samples of a data set that is only iterated are kept, and come in
               random order
Mechanism      classes per batch
Not applicable when the loaders shuffle already, or the batches are cut by hand
"""

from __future__ import annotations

import functools
import itertools
import random
from typing import Any, Callable, Iterator

from _trainsleuth_inside.knobs.acting import says

MOST_KEPT = 20_000  # samples


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
        if isinstance(dataset, data.IterableDataset) and options.get("num_workers", 0) == 0:
            dataset = kept(dataset)
        init(self, dataset, *args, **options)

    class Kept(data.IterableDataset):  # type: ignore[misc, name-defined]
        """A data set whose samples are all read before the first is given; one without an end is given in parts."""

        def __init__(self, dataset: Any) -> None:
            self._dataset, self._chance = dataset, random.Random(0)

        def __iter__(self) -> Iterator[Any]:
            samples = iter(self._dataset)
            while part := list(itertools.islice(samples, MOST_KEPT)):
                self._chance.shuffle(part)
                acted()
                yield from part

        def __getattr__(self, name: str) -> Any:
            return getattr(self.__dict__["_dataset"], name)

    class KeptAndCounted(Kept):
        def __len__(self) -> int:
            return len(self._dataset)

    def kept(dataset: Any) -> Any:
        return (KeptAndCounted if hasattr(dataset, "__len__") else Kept)(dataset)

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
