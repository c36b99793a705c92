"""Records each collective that a rank enters, on the heartbeat page, where it can be read while the rank waits in it.

A collective is known by its number, name, shape and the user's line. DDP's own run in C++ and are not seen here; how many backwards each
rank has made, and how many collectives the process group has counted by itself after the latest of them, tells those apart.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Dict, List, Tuple

from _trainsleuth_inside import import_hooks, places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.heartbeat import NATIVE, NATIVE_AT
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch

NAMES = (
    "all_reduce", "reduce", "broadcast", "all_gather", "all_gather_into_tensor", "gather", "scatter", "reduce_scatter",
    "reduce_scatter_tensor", "all_to_all", "all_to_all_single", "barrier", "all_gather_object", "gather_object",
    "broadcast_object_list", "scatter_object_list", "monitored_barrier", "all_reduce_coalesced",
)  # fmt: skip
MOST_PLACES = MOST_PARAMETERS = 4000


class Collectives:
    """The collectives of this process, those of the default group numbered."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._entered = 0
        self._seconds = 0.0
        self._numbers: Dict[Any, int] = {}
        self._counts: List[int] = []
        self._said = 0

    def enter(self, name: str, shape: Any, whole: bool, at: Any) -> None:
        key = (name, at)
        number = self._numbers.get(key)
        if number is None and len(self._numbers) < MOST_PLACES:
            number = self._numbers[key] = len(self._numbers)
            self._counts.append(0)
            self._watch.facts.write("collective", number=number, name=name, at=at)
        if number is None or not whole:
            return
        self._entered += 1
        self._counts[number] += 1
        self._watch.beat.enter_collective(self._entered, number, shape)

    def leave(self, seconds: float) -> None:
        self._seconds += seconds
        self._watch.beat.leave_collective()
        if self._entered >= 2 * self._said:
            self.write()

    def write(self) -> None:
        if self._entered > self._said:
            self._said = self._entered
            self._watch.facts.write(
                "collectives",
                entered=self._entered,
                counts=self._counts[:500],
                seconds=self._seconds,
                windows=self._watch.windows,
            )


def install(watch: Watch, probe: Probe) -> None:
    import_hooks.after_import("torch.distributed.distributed_c10d", probe.guard(lambda c10d: _wrap(watch, probe, c10d)))
    import_hooks.after_import("torch.nn.parallel.distributed", probe.guard(lambda module: _watch_ddp(watch, probe, module)))


def _watch_ddp(watch: Watch, probe: Probe, module: Any) -> None:
    base = module.DistributedDataParallel
    init = base.__init__

    @stands_for(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        made(self)

    @probe.guard
    def made(wrapped: Any) -> None:
        held = [watch.parameters.number(parameter) for parameter in wrapped.parameters()][:MOST_PARAMETERS]
        watch.facts.write("ddp", at=places.caller(2), find_unused=bool(getattr(wrapped, "find_unused_parameters", False)), params=held)

    base.__init__ = __init__


def _wrap(watch: Watch, probe: Probe, c10d: Any) -> None:
    torch, aside = watch.torch, watch.aside
    state = Collectives(watch)
    nested = [False]
    own = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
    watch.facts.before_exit.append(probe.guard(state.write))

    @probe.guard
    def enter(name: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        caller, group = sys._getframe(3), kwargs.get("group")
        if caller.f_code.co_filename.startswith(own):  # torch's own, as those of `join()`: it knows what it does
            return
        whole = group is None or group is getattr(c10d.GroupMember, "WORLD", None)
        state.enter(name, _shape(torch, args, kwargs), whole, places.of_frame(caller))

    @probe.guard
    def count_native() -> None:
        group = getattr(c10d.GroupMember, "WORLD", None)
        if group is not None:
            try:
                NATIVE.pack_into(watch.beat.page, NATIVE_AT, group._get_sequence_number_for_group())
            except (AttributeError, RuntimeError):  # this torch or this backend does not count: nothing is known then
                watch.count_native = lambda: None

    watch.count_native = count_native
    original_start = c10d.init_process_group

    @probe.guard
    def joined() -> None:
        rank, world = c10d.get_rank(), c10d.get_world_size()
        watch.one_of_many = world > 1
        watch.facts.write("rank", rank=rank, world=world)

    @stands_for(original_start)
    def init_process_group(*args: Any, **kwargs: Any) -> None:
        original_start(*args, **kwargs)
        joined()

    leave = probe.guard(state.leave)
    distributed = sys.modules.get("torch.distributed")
    for name in NAMES:
        original = getattr(c10d, name, None)
        if original is not None:
            wrapped = _wrapper(original, name, nested, aside, enter, leave)
            setattr(c10d, name, wrapped)
            if getattr(distributed, name, None) is original:
                setattr(distributed, name, wrapped)
    c10d.init_process_group = init_process_group
    if getattr(distributed, "init_process_group", None) is original_start:
        distributed.init_process_group = init_process_group  # type: ignore[union-attr]


def _wrapper(original: Any, name: str, nested: List[bool], aside: Any, enter: Any, leave: Any) -> Any:
    @stands_for(original)
    def collective(*args: Any, **kwargs: Any) -> Any:
        if nested[0] or aside():
            return original(*args, **kwargs)
        nested[0] = True
        began = time.perf_counter()
        try:
            enter(name, args, kwargs)
            return original(*args, **kwargs)
        finally:
            nested[0] = False
            leave(time.perf_counter() - began)

    return collective


def _shape(torch: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Tuple[int, ...]:
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor):
            return tuple(value.shape)
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor):
            return (len(value), *value[0].shape)
    return ()
