"""Knob `train-mode`: modules are in train mode during each forward that records gradients, and only then.

Changes        the mode in which BatchNorm and Dropout run during training; after the forward they are as the program left them
Mechanism      number of mode-sensitive modules that are in eval mode during training
Not applicable when they are in train mode already, or the model is compiled before it can be reached
"""

from __future__ import annotations

import functools
from typing import Any, List, Sequence

from _trainsleuth_inside.knobs.acting import says
from _trainsleuth_inside.models import sensitive_to_mode


def turn(watch: Any, modules: Sequence[str] = ()) -> None:
    torch = watch.torch
    base = torch.nn.Module
    call = base.__call__
    compiling = torch.compiler.is_compiling
    acted = says(watch, "train-mode")
    named = frozenset(modules)
    state = {"inside": False}

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if compiling() or state["inside"] or not torch.is_grad_enabled():
            return call(self, *args, **kwargs)
        state["inside"] = True
        asleep = _in_eval(self, named)
        try:
            for module in asleep:
                module.training = True
            return call(self, *args, **kwargs)
        finally:
            for module in asleep:
                module.training = False
            state["inside"] = False
            sensitive = [type(module).__name__ for module in asleep if sensitive_to_mode(module)]
            if sensitive:
                acted(modules=len(sensitive), kinds=sorted(set(sensitive)))

    functools.update_wrapper(__call__, call)
    base.__call__ = __call__
    watch.skip_when_compiling.append(__call__.__code__)


def _in_eval(root: Any, named: "frozenset[str]") -> List[Any]:
    """A model in eval mode as a whole; in one that trains, the named modules with all below them."""
    if not root.training or not named:
        return [module for module in root.modules() if not module.training]
    found = {id(below): below for path, module in root.named_modules() if path in named for below in module.modules()}
    return [module for module in found.values() if not module.training]
