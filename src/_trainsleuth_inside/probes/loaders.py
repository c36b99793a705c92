"""Records the data loaders: their data set, order and workers, each pass over them, and the time spent waiting."""

from __future__ import annotations

import time
from typing import Any, Dict, Optional

from _trainsleuth_inside import places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.heartbeat import DATA, OUTSIDE, PHASE_AT
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch


def install(watch: Watch, probe: Probe) -> None:
    torch = watch.torch
    data = torch.utils.data
    loader_base = data.DataLoader
    iterator_base = data.dataloader._BaseDataLoaderIter
    names: Dict[int, str] = {}
    count = {"seen": 0}
    passes: Dict[str, int] = {}
    init, begin, following = loader_base.__init__, iterator_base.__init__, iterator_base.__next__

    @stands_for(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        made(self)

    @probe.guard
    def made(loader: Any) -> None:
        count["seen"] += 1
        name = names[id(loader)] = f"d{count['seen']}"
        try:
            length = len(loader.dataset)
        except (TypeError, NotImplementedError):
            length = None
        sampler = type(getattr(loader, "sampler", None)).__name__
        batch_sampler = type(getattr(loader, "batch_sampler", None)).__name__
        watch.facts.write(
            "loader", id=name, at=places.caller(2), dataset=type(loader.dataset).__name__, length=length,
            batch_size=loader.batch_size, sampler=sampler, batch_sampler=batch_sampler, workers=loader.num_workers,
            drop_last=bool(loader.drop_last), ordered_at=_order_of(loader),
        )  # fmt: skip

    loader_base.__init__ = __init__

    @stands_for(begin)
    def begin_watched(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, loader, *args, **kwargs)
        began(self, loader)

    @probe.guard
    def began(iterator: Any, loader: Any) -> None:
        name = names.get(id(loader))
        iterator._trainsleuth_pass = [name, 0, 0.0]
        watch.phase_begins(name)

    iterator_base.__init__ = begin_watched

    @stands_for(following)
    def __next__(self: Any) -> Any:
        watch.beat.page[PHASE_AT] = DATA
        start = time.perf_counter()
        try:
            batch = following(self)
        except StopIteration:
            passed(self)
            raise
        finally:
            watch.beat.page[PHASE_AT] = OUTSIDE
        fetched(self, time.perf_counter() - start)
        return batch

    iterator_base.__next__ = __next__

    @probe.guard
    def fetched(iterator: Any, seconds: float) -> None:
        row = getattr(iterator, "_trainsleuth_pass", None)
        if row is not None:
            row[1] += 1
            row[2] += seconds
            watch.current_loader = row[0]

    @probe.guard
    def passed(iterator: Any) -> None:
        row = getattr(iterator, "_trainsleuth_pass", None)
        if row is None or row[0] is None:
            return
        name = row[0]
        passes[name] = passes.get(name, 0) + 1
        n = passes[name]
        if n <= 16 or n & (n - 1) == 0:
            watch.facts.write(
                "loader_pass", id=name, n=n, batches=row[1], waited=round(row[2], 6),
                windows=watch.windows, backwards=watch.backwards,
            )  # fmt: skip
        row[1], row[2] = 0, 0.0
        if n <= 4:
            watch.flush()


def _order_of(loader: Any) -> Optional[places.Place]:
    """Where the user's own sampler says in which order the samples come."""
    for sampler in (getattr(loader, "batch_sampler", None), getattr(loader, "sampler", None)):
        code = getattr(getattr(type(sampler), "__iter__", None), "__code__", None)
        if code is not None and places.kind_of(code.co_filename) == places.USER:
            return places.beginning_of(code)
    return None
