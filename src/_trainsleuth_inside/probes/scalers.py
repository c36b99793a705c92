"""Records what a GradScaler does: its scale, and the steps it skips because a gradient was not finite."""

from __future__ import annotations

from typing import Any, Set

from _trainsleuth_inside import places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.movement import read_all
from _trainsleuth_inside.probes.autograd import remember_scaled
from _trainsleuth_inside.probes.precision import has_unscaled
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch
from _trainsleuth_inside.windows import OptimizerRecord


def install(watch: Watch, probe: Probe) -> None:
    torch = watch.torch
    base = torch.amp.GradScaler
    scale, step, init = base.scale, base.step, base.__init__
    unfollowed: Set[int] = set()  # scalers that scaled several losses at once, which nobody follows

    @stands_for(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        made(self)

    @probe.guard
    def made(scaler: Any) -> None:
        if scaler.is_enabled():
            watch.facts.write("scaler", at=places.caller(2), scale=float(scaler._init_scale), device=str(scaler._device))
        else:
            watch.facts.write("scaler_off", at=places.caller(2), device=str(scaler._device))

    base.__init__ = __init__

    @stands_for(scale)
    def scale_watched(self: Any, outputs: Any) -> Any:
        result = scale(self, outputs)
        scaled(self, outputs, result)
        return result

    @probe.guard
    def scaled(scaler: Any, outputs: Any, result: Any) -> None:
        if isinstance(outputs, torch.Tensor) and result is not outputs:
            remember_scaled(watch, scaler, outputs, result)
        elif not isinstance(outputs, torch.Tensor):
            unfollowed.add(id(scaler))

    base.scale = scale_watched

    @stands_for(step)
    def step_watched(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        steps = steps_of(self, optimizer)
        watch.in_scaler_step = True
        try:
            result = step(self, optimizer, *args, **kwargs)
        finally:
            watch.in_scaler_step = False
        stepped(self, optimizer, steps)
        return result

    @probe.guard
    def steps_of(scaler: Any, optimizer: Any) -> Any:
        record = watch.record_of(optimizer)
        if record is None:
            return None
        if record.sampling and not watch.resting and scaler.is_enabled() and not watch.late.busy():
            window = record.windows + 1
            read_all(watch, [scaler._scale], lambda values: watch.facts.write("scale", opt=record.name, window=window, scale=values[0]))
            look_at_losses(scaler, record)
        return record.steps

    def look_at_losses(scaler: Any, record: OptimizerRecord) -> None:
        """Did the gradients that the scaler is about to divide come from losses that it had multiplied?"""
        backwards = list(record.pending)
        if not backwards or scaler._scale is None or id(scaler) in unfollowed or has_unscaled(scaler, record.optimizer()):
            return  # what the program has unscaled itself, it may have had its reasons for
        scaled = any(backward.scaler is not None for backward in backwards)
        fact = {"opt": record.name, "window": record.windows + 1, "scaled": scaled, "backward_at": backwards[-1].at}
        read_all(watch, [scaler._scale], lambda values: watch.facts.write("scaler_step", **fact, scale=values[0]))

    @probe.guard
    def stepped(scaler: Any, optimizer: Any, steps: Any) -> None:
        record = watch.record_of(optimizer)
        if record is None or steps is None or not scaler.is_enabled():
            return
        if record.steps == steps:
            watch.wake()
            record.step_skipped()
            record.step_at = record.step_at or places.caller(2)
            watch.facts.once(("skip", record.windows if record.windows < 8 else record.windows.bit_length()), "step_skipped",
                             opt=record.name, window=record.windows, at=places.caller(2),
                             scale=_scale(scaler))  # fmt: skip
            watch.window_closed(record)

    base.step = step_watched


def _scale(scaler: Any) -> Any:
    """The present scale; a skipped step has made the program wait for its device already."""
    value = scaler._scale
    return None if value is None else float(value)
