"""Knob `relu-inside`: hidden layers use ReLU instead of an activation that saturates, and start from weights that suit it.

Changes        `Sigmoid` and `Tanh` modules and functions inside a model act as ReLU; weights that are far too small or too large for their
               layer are drawn anew before the first step
Mechanism      how much of the gradient reaches the first layers
Not applicable when nothing saturates and the weights have their usual size
"""

from __future__ import annotations

import math
from typing import Any, Set

from _trainsleuth_inside.knobs.acting import only_in_models, says


def turn(watch: Any) -> None:
    torch = watch.torch
    functional = torch.nn.functional
    acted = says(watch, "relu-inside")
    inside = {"depth": 0}
    seen: Set[int] = set()
    saturating = {name: getattr(torch, name) for name in ("sigmoid", "tanh")}

    def rectified(name: str) -> Any:
        original = saturating[name]

        def activation(input: Any, *args: Any, **kwargs: Any) -> Any:
            if not inside["depth"] or input.dim() < 2 or input.shape[-1] == 1:
                return original(input, *args, **kwargs)
            acted(activation=name)
            return functional.relu(input)

        return activation

    def renew(model: Any) -> None:
        for module in model.modules():
            weight: Any = getattr(module, "weight", None)
            weight = weight.detach() if isinstance(weight, torch.Tensor) else None
            if isinstance(module, (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d)) and weight.std() > 0:
                usual = 1 / math.sqrt(3 * weight[0].numel())
                if not 0.4 < float(weight.std()) / usual < 8:
                    acted(weights=type(module).__name__)
                torch.nn.init.kaiming_normal_(weight)

    def around(model: Any, call: Any, args: Any, kwargs: Any) -> Any:
        if id(model) not in seen:
            seen.add(id(model))
            if watch.windows == 0:
                renew(model)
        inside["depth"] += 1
        try:
            return call(model, *args, **kwargs)
        finally:
            inside["depth"] -= 1

    for name in saturating:
        for owner in (torch, torch.Tensor, functional):
            setattr(owner, name, rectified(name))
    only_in_models(watch, around)
