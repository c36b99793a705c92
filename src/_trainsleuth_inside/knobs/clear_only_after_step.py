"""Knob `clear-only-after-step`: gradients that no step has used yet are not cleared.

Changes        `zero_grad` of an optimizer or a module (and, with `by_hand`, `p.grad = None`) does nothing while gradients of a
               backward wait for their step; the clearing that was put off comes right after that step
Mechanism      micro-batches whose gradients are thrown away, per window
Not applicable when nothing is ever cleared between a backward and its step
"""

from __future__ import annotations

import functools
import importlib
from typing import Any, Callable, Sequence, Set

from _trainsleuth_inside.knobs.acting import called_from, lines, says


def turn(watch: Any, at: Sequence[Sequence[Any]] = (), by_hand: bool = False) -> None:
    torch = watch.torch
    wanted = lines(at)
    acted = says(watch, "clear-only-after-step")
    owing: Set[int] = set()  # optimizers whose clearing was put off

    def waiting(optimizer: Any = None) -> bool:
        """Whether gradients wait for a step: of this optimizer, or of any."""
        records = [watch.record_of(optimizer)] if optimizer is not None else watch.live_records()
        late = [record for record in records if record is not None and record.pending]
        owing.update(id(record.optimizer()) for record in late)
        return bool(late)

    def put_off(original: Callable[..., Any], of_optimizer: bool) -> Callable[..., Any]:
        @functools.wraps(original)
        def zero_grad(self: Any, *args: Any, **kwargs: Any) -> None:
            place = called_from(wanted, 2)
            if place is not None and waiting(self if of_optimizer else None):
                acted(at=place)
            else:
                original(self, *args, **kwargs)

        return zero_grad

    optimizer_clears, module_clears = torch.optim.Optimizer.zero_grad, torch.nn.Module.zero_grad
    torch.optim.Optimizer.zero_grad = put_off(optimizer_clears, True)
    torch.nn.Module.zero_grad = put_off(module_clears, False)
    if by_hand:
        _keep_from_clearing_by_hand(watch, lambda: called_from(wanted, 3), waiting, acted)

    def after_step(optimizer: Any, *_: Any) -> None:
        if id(optimizer) in owing:
            owing.discard(id(optimizer))
            optimizer_clears(optimizer, set_to_none=False)  # zeros, not None: the program may look at gradients after its step

    importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook(after_step)


def _keep_from_clearing_by_hand(watch: Any, place_of: Callable[[], Any], waiting: Callable[[], bool], acted: Any) -> None:
    torch = watch.torch
    attribute = torch._C.TensorBase.grad
    zero = torch.Tensor.zero_

    def put(this: Any, value: Any) -> None:
        place = place_of() if value is None else None
        if place is not None and this.grad is not None and waiting():
            acted(at=place)
        else:
            attribute.__set__(this, value)

    def zero_(this: Any) -> Any:
        place = None if this.requires_grad else place_of()
        if place is not None and any(p.grad is this for p in watch.owned_parameters()) and waiting():
            acted(at=place)
            return this
        return zero(this)

    torch.nn.Parameter.grad = property(attribute.__get__, put)
    torch.Tensor.zero_ = zero_
