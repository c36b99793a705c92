"""Records each backward: where it was called, the loss it started from, and which optimizers it fed."""

from __future__ import annotations

import sys
import weakref
from typing import Any, Dict, Optional, Tuple

from _trainsleuth_inside import places
from _trainsleuth_inside.aside import readable
from _trainsleuth_inside.graph import nodes
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.heartbeat import BACKWARD, BACKWARDS, BACKWARDS_AT, OUTSIDE, PHASE_AT
from _trainsleuth_inside.places import USER, kind_of
from _trainsleuth_inside.series import LossSeries
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch
from _trainsleuth_inside.windows import Backward

MOST_PLACES = 1000


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
            if watch.precision is not None:
                watch.precision.before_backward()
            for record in watch.optimizers.values():
                record.before_backward()
            if watch.deep_window is not None:
                loss = _single(torch, tensors)
                if watch.deep and loss is not None and not watch.late.busy():
                    watch.unchanged.compare(loss, at)
                    watch.deep_window.before_backward(loss, at)
                else:
                    watch.deep_window.drop()
        return at

    @probe.guard
    def after(tensors: Any, at: Optional[places.Place]) -> None:
        watch.beat.tick(OUTSIDE)
        watch.count_native()
        made = Backward(at)
        with watch.plainly():
            for record in watch.optimizers.values():
                record.after_backward(made)
                if record.suspicious and not made.fed_inputs:
                    made.fed_inputs = _fed_inputs(torch, watch, _single(torch, tensors))
            if watch.precision is not None:
                watch.precision.after_backward(made, _single(torch, tensors))
            watch.backward_ended(at, watch.before_scaling(_loss(torch, tensors)))

    torch.autograd.backward = backward
    at_rest = _backward_at_rest(watch, probe, original)
    watch.stands_at_rest(torch.autograd, "backward", at_rest)
    watch.backward_at_rest = (torch.autograd, "backward", at_rest, original)

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


def _backward_at_rest(watch: Watch, probe: Probe, original: Any) -> Any:
    """For windows that nobody looks at: the loss is read all the same, in as few steps as can be."""
    torch, beat, frame_at = watch.torch, watch.beat, sys._getframe
    tensor, function_modes, dispatch_modes = torch.Tensor, torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack
    known: Dict[Tuple[int, int], Tuple[LossSeries, Any]] = {}
    inside = False

    @stands_for(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        if inside:
            return original(tensors, *args, **kwargs)
        inside = True
        beat.page[PHASE_AT] = BACKWARD
        try:
            result = original(tensors, *args, **kwargs)
        finally:
            inside = False
            beat.page[PHASE_AT] = OUTSIDE
        watch.backwards += 1
        if watch.one_of_many:  # ranks are compared by how many backwards each has made
            BACKWARDS.pack_into(beat.page, BACKWARDS_AT, watch.backwards)
            watch.count_native()
        if watch.unread:
            watch.unread -= 1
            return result
        watch.unread = watch.pass_over
        caller = frame_at(2)  # behind torch.Tensor.backward
        found = known.get((id(caller.f_code), caller.f_lasti))
        if found is None or type(tensors) is not tensor or watch.scaled is not None or function_modes() or dispatch_modes():
            read(caller, tensors)
        elif tensors.dim() == 0 and tensors.is_cpu:
            value = tensors.item()
            found[0].rested.append(value)
            if value - value != 0.0:  # NaN or infinite
                broke()
            elif watch.one_each and not watch.one_of_many:
                watch.leave_backward_alone()
        return result

    @probe.guard
    def broke() -> None:
        watch.look_at_what_follows()

    @probe.guard
    def read(caller: Any, tensors: Any) -> None:
        at = places.of_frame(frame_at(3))
        with watch.plainly():
            series = watch.read_loss(at, watch.before_scaling(_loss(torch, tensors)))
        code = caller.f_code
        if series is not None and kind_of(code.co_filename) == USER and len(known) < MOST_PLACES:
            known[(id(code), caller.f_lasti)] = (series, code)  # the code is kept alive, or another may get its number

    return backward


def _loss(torch: Any, tensors: Any) -> Any:
    """The one number that backward began from, if that is what it began from."""
    loss = _single(torch, tensors)
    return loss if loss is not None and loss.numel() == 1 and readable(loss) else None


def _single(torch: Any, tensors: Any) -> Any:
    if isinstance(tensors, torch.Tensor):
        return tensors
    if isinstance(tensors, (list, tuple)) and len(tensors) == 1 and isinstance(tensors[0], torch.Tensor):
        return tensors[0]
    return None


def _fed_inputs(torch: Any, watch: Watch, loss: Any) -> bool:
    """Whether something that is no weight got a gradient: an attack or a saliency map, whose other gradients are waste."""
    if loss is None or loss.grad_fn is None:
        return False
    owned = {id(parameter) for parameter in watch.owned_parameters()}
    leaves = (getattr(node, "variable", None) for _, node in nodes([loss.grad_fn]))
    return any(leaf is not None and not isinstance(leaf, torch.nn.Parameter) and id(leaf) not in owned for leaf in leaves)


def _remember_scaled_losses(watch: Watch) -> None:
    """A scaler multiplies the loss before backward; the curve should show the loss."""
    watch.scaled = None

    def before_scaling(loss: Any) -> Any:
        pair = watch.scaled
        return pair[1] if loss is not None and pair is not None and pair[0]() is loss else loss

    watch.before_scaling = before_scaling


def remember_scaled(watch: Watch, scaler: Any, loss: Any, scaled: Any) -> None:
    watch.scaled = (weakref.ref(scaled), loss.detach())  # without its graph, and kept: nobody else may hold `loss / n`
    if not watch.resting and scaled.grad_fn is not None:
        watch.scaled_by = (weakref.ref(scaler), scaled.grad_fn._sequence_nr())
