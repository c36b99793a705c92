"""Records each collective that a rank enters: number, name, shape and line, on the heartbeat page, where it can be read while it waits.

DDP's own run in C++ and are not seen here; the process group's sequence number, noted after each backward, counts those too.
"""

from __future__ import annotations

import functools
import json
import sys
from typing import Any, Dict, List, Optional, Tuple

from _trainsleuth_inside import import_hooks, places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.watch import Watch

NAMES = (
    "all_reduce", "reduce", "broadcast", "all_gather", "all_gather_into_tensor", "gather", "scatter", "reduce_scatter",
    "reduce_scatter_tensor", "all_to_all", "all_to_all_single", "barrier", "send", "recv", "isend", "irecv",
    "all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list", "monitored_barrier", "all_reduce_coalesced",
)  # fmt: skip
KEPT = 64  # of the latest, written with the others' summary


class Collectives:
    """The collectives of this process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.entered = 0
        self.left = 0
        self._recent: List[List[Any]] = []
        self._written = 0
        self._places: Dict[Tuple[str, Any], int] = {}

    def enter(self, name: str, shape: Any, group: Any, at: Optional[places.Place]) -> None:
        self.entered += 1
        row = [self.entered, name, shape, group, at, False]
        self._recent.append(row)
        del self._recent[:-KEPT]
        self._places[(name, at)] = self._places.get((name, at), 0) + 1
        self._watch.beat.collective(self.entered, _said(row))
        if self.entered <= 16 or self.entered & (self.entered - 1) == 0:
            self.write()

    def leave(self) -> None:
        self.left += 1
        self._recent[-1][5] = True
        self._watch.beat.collective(self.entered, _said(self._recent[-1]))

    def write(self) -> None:
        if self.entered != self._written:
            self._written = self.entered
            counts = [[name, at, n] for (name, at), n in list(self._places.items())[:200]]
            self._watch.facts.write("collectives", entered=self.entered, recent=self._recent[-16:], counts=counts)


def _said(row: List[Any]) -> bytes:
    number, name, shape, group, at, done = row
    return json.dumps({"n": number, "name": name, "shape": shape, "group": group, "at": at, "done": done}).encode()


def install(watch: Watch, probe: Probe) -> None:
    def arrived(module: Any) -> None:
        probe.guard(lambda: _wrap(watch, probe, module))()

    import_hooks.after_import("torch.distributed.distributed_c10d", arrived)


def _wrap(watch: Watch, probe: Probe, c10d: Any) -> None:
    torch = watch.torch
    state = Collectives(watch)
    nested = [False]
    watch.collectives = state
    watch.facts.before_exit.append(probe.guard(state.write))

    @probe.guard
    def enter(name: str, args: Any, kwargs: Any) -> None:
        group = kwargs.get("group")
        state.enter(name, _shape(torch, args, kwargs), getattr(group, "group_name", None), places.of_frame(sys._getframe(3)))

    leave = probe.guard(state.leave)
    aside = watch.aside
    distributed = sys.modules.get("torch.distributed")
    for name in NAMES:
        original = getattr(c10d, name, None)
        if original is None:
            continue
        wrapped = _wrapper(original, name, nested, aside, enter, leave)
        setattr(c10d, name, wrapped)
        if distributed is not None and getattr(distributed, name, None) is original:
            setattr(distributed, name, wrapped)


def _wrapper(original: Any, name: str, nested: List[bool], aside: Any, enter: Any, leave: Any) -> Any:
    @functools.wraps(original)
    def collective(*args: Any, **kwargs: Any) -> Any:
        if nested[0] or aside():
            return original(*args, **kwargs)
        nested[0] = True
        enter(name, args, kwargs)
        try:
            return original(*args, **kwargs)
        finally:
            nested[0] = False
            leave()

    return collective


def _shape(torch: Any, args: Any, kwargs: Any) -> Any:
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor):
            return list(value.shape)
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor):
            return [len(value), *value[0].shape]
    return None
