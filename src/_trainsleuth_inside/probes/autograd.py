"""Records each backward: where it was called, the loss it started from, and which optimizers it fed."""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any, Optional

from _trainsleuth_inside import places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.heartbeat import BACKWARD, OUTSIDE
from _trainsleuth_inside.watch import Watch
from _trainsleuth_inside.windows import Backward


def install(watch: Watch, probe: Probe) -> None:
    torch = watch.torch
    compiling = torch.compiler.is_compiling
    original = torch.autograd.backward
    running = {"inside": False}

    @functools.wraps(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if compiling() or running["inside"] or not probe.on:
            return original(tensors, *args, **kwargs)
        running["inside"] = True
        try:
            at = before(tensors)
            result = original(tensors, *args, **kwargs)
        finally:
            running["inside"] = False
        after(tensors, at)
        return result

    @probe.guard
    def before(tensors: Any) -> Optional[places.Place]:
        at = places.of_frame(sys._getframe(3))
        watch.beat.tick(BACKWARD)
        for record in watch.optimizers.values():
            record.before_backward()
        if watch.deep and watch.deep_window is not None:
            loss = _single(torch, tensors)
            if loss is not None and not watch.late.busy():
                watch.deep_window.before_backward(loss, at)
        return at

    @probe.guard
    def after(tensors: Any, at: Optional[places.Place]) -> None:
        watch.beat.tick(OUTSIDE)
        made = Backward(at)
        for record in watch.optimizers.values():
            record.after_backward(made)
            if record.suspicious and not made.fed_inputs:
                made.fed_inputs = _fed_its_inputs(torch, watch)
        loss = _single(torch, tensors)
        if loss is not None and loss.numel() != 1:
            loss = None
        watch.backward_ended(at, watch.before_scaling(loss))

    torch.autograd.backward = backward

    grad = torch.autograd.grad

    @functools.wraps(grad)
    def grad_watched(*args: Any, **kwargs: Any) -> Any:
        result = grad(*args, **kwargs)
        if not compiling():
            counted()
        return result

    @probe.guard
    def counted() -> None:
        watch.facts.once("autograd.grad", "autograd_grad", at=places.of_frame(sys._getframe(2)))

    torch.autograd.grad = grad_watched
    _remember_scaled_losses(watch)


def _single(torch: Any, tensors: Any) -> Any:
    if isinstance(tensors, torch.Tensor):
        return tensors
    if isinstance(tensors, (list, tuple)) and len(tensors) == 1 and isinstance(tensors[0], torch.Tensor):
        return tensors[0]
    return None


def _fed_its_inputs(torch: Any, watch: Watch) -> bool:
    """Whether the model's own arguments got a gradient: an attack or a saliency map, whose other gradients are waste."""
    if watch.last_call is None:
        return False
    return any(
        isinstance(value, torch.Tensor) and value.is_leaf and value.requires_grad and not isinstance(value, torch.nn.Parameter)
        for value in watch.last_call[2]
    )


def _remember_scaled_losses(watch: Watch) -> None:
    """A scaler multiplies the loss before backward; the curve should show the loss."""
    watch.scaled = None

    def before_scaling(loss: Any) -> Any:
        pair = watch.scaled
        if loss is not None and pair is not None and pair[0]() is loss:
            return pair[1]()
        return loss

    watch.before_scaling = before_scaling


def remember_scaled(watch: Watch, loss: Any, scaled: Any) -> None:
    watch.scaled = (weakref.ref(scaled), weakref.ref(loss))
