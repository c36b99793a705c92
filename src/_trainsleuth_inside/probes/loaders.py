"""Records the data loaders: their data set, order and workers, each pass over them, and the time spent waiting."""

from __future__ import annotations

import time
from typing import Any, Dict, Iterator, List, Optional

from _trainsleuth_inside import places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.heartbeat import DATA, OUTSIDE, PHASE_AT
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch

PASSES_COMPARED, BATCHES_COMPARED = 2, 32  # of each loader with several workers
NUMBERS_COMPARED, LEAST_NUMBERS = 128, 32


def install(watch: Watch, probe: Probe) -> None:
    torch = watch.torch
    data = torch.utils.data
    loader_base = data.DataLoader
    iterator_base = data.dataloader._BaseDataLoaderIter
    names: Dict[int, str] = {}
    count = {"seen": 0}
    passes: Dict[str, int] = {}
    compared: Dict[Optional[str], List[List[Any]]] = {}
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
            drop_last=bool(loader.drop_last), ordered_at=_order_of(loader), read_at=reader_of(loader.dataset),
            collated_at=_collator_of(loader),
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
        if loader.num_workers > 1 and len(compared.get(name, ())) < PASSES_COMPARED:
            compared.setdefault(name, []).append([])
            iterator._trainsleuth_prints = compared[name][-1]
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
        if "_trainsleuth_prints" in self.__dict__:
            compare(self, batch)
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
    def compare(iterator: Any, batch: Any) -> None:
        prints = iterator._trainsleuth_prints
        seen = _print_of(torch, batch)
        if seen is not None:
            prints.append(seen)
        if seen is None or len(prints) >= BATCHES_COMPARED:
            tell(iterator)

    def tell(iterator: Any) -> None:
        """Of the first batches of a pass: to which earlier one each of them is equal, by its place."""
        prints = iterator.__dict__.pop("_trainsleuth_prints", None)
        row = getattr(iterator, "_trainsleuth_pass", None)
        if prints and row is not None:
            watch.facts.write("loader_batches", id=row[0], workers=iterator._num_workers, equal_to=[prints.index(one) for one in prints])

    @probe.guard
    def passed(iterator: Any) -> None:
        tell(iterator)
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


def reader_of(dataset: Any) -> Optional[places.Place]:
    """Where the data set's own `__iter__` or `__getitem__` begins."""
    for name in ("__iter__", "__getitem__"):
        code = getattr(getattr(type(dataset), name, None), "__code__", None)
        if code is not None and places.kind_of(code.co_filename) == places.USER:
            return places.beginning_of(code)
    return None


def _collator_of(loader: Any) -> Optional[places.Place]:
    """Where the user's own collate function begins; that of Hugging Face's Trainer may be wrapped."""
    collate = getattr(loader, "collate_fn", None)
    collate = getattr(collate, "data_collator", collate)
    for function in (collate, vars(type(collate)).get("__call__")):
        code = getattr(function, "__code__", None)
        if code is not None and places.kind_of(code.co_filename) == places.USER:
            return places.beginning_of(code)
    return None


def _print_of(torch: Any, batch: Any) -> Optional[Any]:
    """Some numbers of the first tensor of a batch on the host that holds more than labels would."""
    for value in _tensors(torch, batch):
        if value.device.type == "cpu" and value.numel() > LEAST_NUMBERS and not value.is_sparse and not value.is_complex():
            flat = value.detach().reshape(-1)
            return tuple(value.shape), str(flat[:: -(-flat.shape[0] // NUMBERS_COMPARED)].tolist())
    return None


def _tensors(torch: Any, batch: Any, level: int = 0) -> Iterator[Any]:
    if isinstance(batch, torch.Tensor):
        yield batch
    elif level < 3 and isinstance(batch, (list, tuple)):
        for item in batch:
            yield from _tensors(torch, item, level + 1)
    elif level < 3 and hasattr(batch, "values") and hasattr(batch, "keys"):
        for item in batch.values():
            yield from _tensors(torch, item, level + 1)


def _order_of(loader: Any) -> Optional[places.Place]:
    """Where the user's own sampler says in which order the samples come."""
    for sampler in (getattr(loader, "batch_sampler", None), getattr(loader, "sampler", None)):
        code = getattr(getattr(type(sampler), "__iter__", None), "__code__", None)
        if code is not None and places.kind_of(code.co_filename) == places.USER:
            return places.beginning_of(code)
    return None
