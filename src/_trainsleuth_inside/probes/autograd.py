"""Records each backward: where it was called, the loss it started from, and which optimizers it fed."""

from __future__ import annotations

import sys
import weakref
from typing import Any, Optional

from _trainsleuth_inside import places
from _trainsleuth_inside.aside import readable
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.heartbeat import BACKWARD, OUTSIDE
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch
from _trainsleuth_inside.windows import Backward


def install(watch: Watch, probe: Probe) -> None:
    torch = watch.torch
    aside = watch.aside
    original = torch.autograd.backward
    running = {"inside": False}

    @stands_for(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if aside() or running["inside"] or not probe.on:
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
        with watch.plainly():
            for record in watch.optimizers.values():
                record.before_backward()
            if watch.deep_window is not None:
                loss = _single(torch, tensors)
                if watch.deep and loss is not None and not watch.late.busy():
                    watch.deep_window.before_backward(loss, at)
                else:
                    watch.deep_window.drop()
        return at

    @probe.guard
    def after(tensors: Any, at: Optional[places.Place]) -> None:
        watch.beat.tick(OUTSIDE)
        made = Backward(at)
        with watch.plainly():
            for record in watch.optimizers.values():
                record.after_backward(made)
                if record.suspicious and not made.fed_inputs:
                    made.fed_inputs = _fed_its_inputs(torch, watch)
            loss = _single(torch, tensors)
            if loss is not None and not (loss.numel() == 1 and readable(loss)):
                loss = None
            watch.backward_ended(at, watch.before_scaling(loss))

    torch.autograd.backward = backward

    grad = torch.autograd.grad

    @stands_for(grad)
    def grad_watched(*args: Any, **kwargs: Any) -> Any:
        result = grad(*args, **kwargs)
        if not aside():
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
    arguments = (reference() for reference in watch.last_call[2])
    return any(
        value is not None and value.is_leaf and value.requires_grad and not isinstance(value, torch.nn.Parameter)
        for value in arguments
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
