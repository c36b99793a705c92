"""Knob `gradients-shared`: the ranks hold the same weights, and each step uses the mean of their gradients.

Changes        before its first step an optimizer's weights are those of rank 0; before each step its gradients are averaged over all ranks
Mechanism      weights that differ between ranks
Not applicable when there is one rank only
"""

from __future__ import annotations

import importlib
import weakref
from typing import Any, List

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    torch, acted = watch.torch, says(watch, "gradients-shared")
    known: Any = weakref.WeakSet()

    def before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        ranks = torch.distributed
        if not ranks.is_available() or not ranks.is_initialized() or ranks.get_world_size() < 2:
            return
        parameters: List[Any] = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
        with watch.plainly(), torch.no_grad():
            if optimizer not in known:
                known.add(optimizer)
                acted(world=ranks.get_world_size())
                for parameter in parameters:
                    ranks.broadcast(parameter.data, 0)
            for parameter in parameters:
                gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                ranks.all_reduce(gradient)
                gradient /= ranks.get_world_size()
                if parameter.grad is None and bool(gradient.any()):
                    parameter.grad = gradient

    importlib.import_module("torch.optim.optimizer").register_optimizer_step_pre_hook(before_step)
