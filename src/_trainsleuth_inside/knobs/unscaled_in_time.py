"""Knob `unscaled-in-time`: gradients of a scaled loss are unscaled before anyone clips them or steps with them.

Changes        right before `clip_grad_norm_` and the like, and a step that does not go through the scaler, `scaler.unscale_(optimizer)`
               is called for gradients that are still scaled; where such a step would use an Inf it is left out
Mechanism      scaled gradients that are clipped or used
Not applicable when no loss is scaled, or all gradients are unscaled in time
"""

from __future__ import annotations

import functools
from typing import Any, List, Set

from _trainsleuth_inside.knobs.acting import before_each_step, says


def turn(watch: Any) -> None:
    torch = watch.torch
    acted = says(watch, "unscaled-in-time")
    base = torch.amp.GradScaler
    scale, program_unscales = base.scale, base.unscale_
    scalers: List[Any] = []
    by_us: Set[int] = set()  # optimizers that were unscaled before the program came to do it

    @functools.wraps(scale)
    def scale_known(self: Any, outputs: Any) -> Any:
        if self.is_enabled() and self not in scalers:
            scalers.append(self)
        return scale(self, outputs)

    base.scale = scale_known

    @functools.wraps(program_unscales)
    def unscale_once(self: Any, optimizer: Any) -> None:
        if id(optimizer) in by_us and self._per_optimizer_states[id(optimizer)]["stage"].name == "UNSCALED":
            by_us.discard(id(optimizer))
            return
        program_unscales(self, optimizer)

    base.unscale_ = unscale_once

    def waits(scaler: Any, optimizer: Any) -> bool:
        return bool(scaler._per_optimizer_states[id(optimizer)]["stage"].name == "READY")

    def unscale(optimizer: Any) -> None:
        for scaler in scalers:
            if waits(scaler, optimizer) and any(p.grad is not None for group in optimizer.param_groups for p in group["params"]):
                acted()
                program_unscales(scaler, optimizer)
                by_us.add(id(optimizer))

    def owners(parameters: Any) -> List[Any]:
        wanted = {id(parameter) for parameter in parameters}
        known = [record.optimizer() for record in watch.live_records()]
        return [each for each in known if each is not None and any(id(p) in wanted for group in each.param_groups for p in group["params"])]

    def before(original: Any) -> Any:
        @functools.wraps(original)
        def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
            for optimizer in owners(parameters):
                unscale(optimizer)
            return original(parameters, *args, **kwargs)

        return clip

    def with_norm(original: Any) -> Any:
        """The norm was taken of gradients that were still scaled, if they are unscaled only now."""

        @functools.wraps(original)
        def clip(parameters: Any, max_norm: float, total_norm: Any, *args: Any, **kwargs: Any) -> Any:
            parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
            for optimizer in owners(parameters):
                scale = next((scaler.get_scale() for scaler in scalers if waits(scaler, optimizer)), 1.0)
                unscale(optimizer)
                total_norm = total_norm / scale
            return original(parameters, max_norm, total_norm, *args, **kwargs)

        return clip

    clipping = torch.nn.utils.clip_grad
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        wrapped = before(getattr(clipping, name))
        setattr(clipping, name, wrapped)
        setattr(torch.nn.utils, name, wrapped)
    if hasattr(torch.nn.utils, "clip_grads_with_norm_"):
        torch.nn.utils.clip_grads_with_norm_ = with_norm(torch.nn.utils.clip_grads_with_norm_)

    def not_by_the_scaler(optimizer: Any) -> None:
        """What the scaler's own step and update would have done: unscale, leave a step with an Inf out, and be ready for the next."""
        if watch.in_scaler_step:
            return
        unscale(optimizer)
        for scaler in scalers:
            found = scaler._per_optimizer_states.pop(id(optimizer), {}).get("found_inf_per_device", {})
            if any(float(inf) for inf in found.values()):
                optimizer.zero_grad(set_to_none=True)

    before_each_step(watch, not_by_the_scaler)
