"""Knob `ranks-do-not-wait`: at the named lines no rank waits for the others.

Changes        collectives that are called there return at once, with this rank's own share in place of the others'; where ranks wait in
               backward, DDP does not share gradients
Mechanism      ranks that do not make the same calls
Not applicable when nothing is shared at these lines
"""

from __future__ import annotations

import functools
import sys
from typing import Any, List, Sequence

from _trainsleuth_inside import import_hooks
from _trainsleuth_inside.knobs.acting import Line, called_from, lines, says
from _trainsleuth_inside.probes.collectives import NAMES

INTO_A_LIST = ("all_gather", "all_gather_object", "gather", "gather_object")


class _Done:
    """What an asynchronous call returns: it has nothing to wait for."""

    def wait(self, *_: Any) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def result(self) -> List[Any]:
        return []


def turn(watch: Any, at: Sequence[Sequence[Any]], in_backward: bool = False) -> None:
    wanted = lines(at)
    acted = says(watch, "ranks-do-not-wait")
    import_hooks.after_import("torch.distributed.distributed_c10d", lambda c10d: _skip(c10d, wanted, acted))
    if in_backward:
        import_hooks.after_import("torch.nn.parallel.distributed", lambda module: _unshared(module.DistributedDataParallel, acted))


def _skip(c10d: Any, wanted: List[Line], acted: Any) -> None:
    distributed = sys.modules.get("torch.distributed")
    for name in NAMES:
        original = getattr(c10d, name, None)
        if original is None:
            continue
        skipped = _skipped(original, name, wanted, acted)
        setattr(c10d, name, skipped)
        if getattr(distributed, name, None) is original:
            setattr(distributed, name, skipped)


def _skipped(original: Any, name: str, wanted: List[Line], acted: Any) -> Any:
    @functools.wraps(original)
    def collective(*args: Any, **kwargs: Any) -> Any:
        if not wanted or called_from(wanted) is None:
            return original(*args, **kwargs)
        acted(name=name)
        _own_share(name, args)
        return _Done() if kwargs.get("async_op") else None

    return collective


def _own_share(name: str, args: Any) -> None:
    """What is gathered is this rank's own, as often as there are ranks."""
    if name not in INTO_A_LIST or len(args) < 2:
        return
    given, own = (args[0], args[1]) if name.startswith("all_") else (args[1], args[0])
    for index in range(len(given) if isinstance(given, list) else 0):
        if hasattr(given[index], "copy_"):
            given[index].copy_(own)
        else:
            given[index] = own


def _unshared(ddp: Any, acted: Any) -> None:
    forward = ddp.forward

    @functools.wraps(forward)
    def alone(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.require_backward_grad_sync = False
        self.require_forward_param_sync = False
        acted(name="backward")
        return forward(self, *args, **kwargs)

    ddp.forward = alone
