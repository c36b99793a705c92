"""Records whether reading a sample changes what the data set keeps of it: a transform that works in place on a view of the store.

A few samples are watched, each whenever a loader of this process reads it; nothing is read in addition.
"""

from __future__ import annotations

import importlib
from typing import Any, Dict, List, Tuple

from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.probes.loaders import reader_of
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.stored_samples import behind_subsets, copied, same, stored
from _trainsleuth_inside.watch import Watch

WATCHED = 4  # samples of a data set
READINGS = 6  # of each
MOST_FETCHES = 20_000  # after which nobody waits for a second reading


class Sample:
    """One sample that is watched: how often it was read, and what reading it left behind."""

    __slots__ = ("left", "readings", "stayed")

    def __init__(self) -> None:
        self.readings = 0
        self.left: Any = None  # of the field that the last reading changed: its name, and what was there afterwards
        self.stayed = 0  # changes that were still there when it was read again


def install(watch: Watch, probe: Probe) -> None:
    torch = watch.torch
    base = importlib.import_module("torch.utils.data._utils.fetch")._MapDatasetFetcher
    fetch = base.fetch
    samples: Dict[int, Dict[int, Sample]] = {}  # by data set and index
    count = {"fetches": 0}

    @stands_for(fetch)
    def fetch_watched(self: Any, possibly_batched_index: Any) -> Any:
        if not probe.on or count["fetches"] >= MOST_FETCHES or watch.aside():
            return fetch(self, possibly_batched_index)
        before = about_to_read(self.dataset, possibly_batched_index)
        result = fetch(self, possibly_batched_index)
        if before:
            was_read(self.dataset, before)
        return result

    base.fetch = fetch_watched

    @probe.guard
    def about_to_read(dataset: Any, indices: Any) -> List[Tuple[Sample, List[Any]]]:
        count["fetches"] += 1
        known = samples.setdefault(id(dataset), {})
        listed = indices if isinstance(indices, (list, tuple)) else [indices]
        if not listed or not isinstance(listed[0], int):  # keys of the program's own
            return []
        if len(known) < WATCHED:
            known.setdefault(listed[0], Sample())
        if known.keys().isdisjoint(listed):
            return []
        wanted = [(index, one) for index in listed if (one := known.get(index)) is not None and one.readings < READINGS]
        looked_at = []
        for index, one in wanted:
            fields = [(name, kind, value, copied(value)) for name, kind, value in stored(torch, dataset, index)]
            if one.left is not None:
                one.stayed += any(name == one.left[0] and same(old, one.left[1]) for name, _, _, old in fields)
            looked_at.append((one, fields))
        return looked_at

    @probe.guard
    def was_read(dataset: Any, looked_at: List[Tuple[Sample, List[Any]]]) -> None:
        for one, fields in looked_at:
            one.readings += 1
            one.left = None
            for name, kind, value, old in fields:
                if bool((old != 0).any()) and not same(value, old):
                    one.left = (name, copied(value))
                    if one.stayed:  # a store that is filled, or prepared when it is first read, changes once
                        tell(dataset, name, kind, value, old, one)
                    break

    def tell(dataset: Any, name: str, kind: str, value: Any, old: Any, one: Sample) -> None:
        inner, _ = behind_subsets(dataset, 0)
        changed = (value != old).float() if hasattr(value, "detach") else value != old
        watch.facts.write(
            "sample_rewritten", dataset=type(inner).__name__, field=name, kind=kind, readings=one.readings, share=float(changed.mean()),
            before=_about(old), after=_about(value), read_at=reader_of(inner), windows=watch.windows,
        )  # fmt: skip


def _about(value: Any) -> List[float]:
    """Its least and its largest number."""
    return [float(value.min()), float(value.max())]
