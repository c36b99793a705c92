"""Knob `own-share`: each rank gets its own batches.

Changes        of the batches that a loader gives at the named lines, a rank keeps every n-th, n ranks together all of them; what is left over
               at the end is dropped
Mechanism      batches that are the same on every rank
Not applicable when no loader is built there, or there is one rank only
"""

from __future__ import annotations

import functools
from typing import Any, Iterator, Sequence, Set

from _trainsleuth_inside.knobs.acting import called_from, lines, says


def turn(watch: Any, at: Sequence[Sequence[Any]]) -> None:
    base = watch.torch.utils.data.DataLoader
    init, iterate = base.__init__, base.__iter__
    wanted = lines(at)
    acted = says(watch, "own-share")
    divided: Set[int] = set()

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **options: Any) -> None:
        if called_from(wanted) is not None:
            divided.add(id(self))
        init(self, *args, **options)

    def share(batches: Iterator[Any], rank: int, world: int) -> Iterator[Any]:
        acted(world=world)
        for group in zip(*[batches] * world):
            yield group[rank]

    @functools.wraps(iterate)
    def __iter__(self: Any) -> Any:
        batches = iterate(self)
        distributed = watch.torch.distributed
        if id(self) not in divided or not distributed.is_initialized() or distributed.get_world_size() < 2:
            return batches
        return share(batches, distributed.get_rank(), distributed.get_world_size())

    base.__init__, base.__iter__ = __init__, __iter__
