"""Knob `eval-mode`: modules are in eval mode during each forward without gradients, and only then.

Changes        the mode in which BatchNorm and Dropout run during validation; after the forward they are as the program left them; calls of
               functional.dropout that are not told the mode drop nothing there
Mechanism      forwards without gradients in train mode
Not applicable when validation runs in eval mode already
"""

from __future__ import annotations

import functools
from typing import Any

from _trainsleuth_inside.dropping import FUNCTIONS, TOLD
from _trainsleuth_inside.knobs.acting import only_in_models, says
from _trainsleuth_inside.models import sensitive_to_mode


def turn(watch: Any) -> None:
    torch = watch.torch
    acted = says(watch, "eval-mode")

    def around(model: Any, call: Any, args: Any, kwargs: Any) -> Any:
        awake = [] if torch.is_grad_enabled() else [module for module in model.modules() if module.training]
        if not any(map(sensitive_to_mode, awake)):
            return call(model, *args, **kwargs)
        acted(modules=len(awake))
        for module in awake:
            module.training = False
        try:
            return call(model, *args, **kwargs)
        finally:
            for module in awake:
                module.training = True

    only_in_models(watch, around)
    for name in FUNCTIONS:
        setattr(torch.nn.functional, name, _told_the_mode(torch, getattr(torch.nn.functional, name), acted))


def _told_the_mode(torch: Any, original: Any, acted: Any) -> Any:
    @functools.wraps(original)
    def dropout(input: Any, p: float = 0.5, *args: Any, **kwargs: Any) -> Any:
        if not args and "training" not in kwargs and not torch.is_grad_enabled():
            acted(functional=True)
            return input
        return original(input, p, *args, **kwargs)

    setattr(dropout, TOLD, True)
    return dropout
