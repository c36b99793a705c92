"""Knob `precision-32`: everything, or the named modules, compute in 32 bit.

Changes        autocast regions and scalers are off, `.half()` and `.bfloat16()` do nothing; with `modules`: autocast is off inside those
               modules alone, their inputs are cast to 32 bit
Mechanism      dtype in which layers compute
Not applicable when the program computes in 32 bit already
"""

from __future__ import annotations

from typing import Any, Sequence

from _trainsleuth_inside.knobs import autocast_off, scaler_off
from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any, modules: Sequence[str] = ()) -> None:
    acted = says(watch, "precision-32")
    if modules:
        _within(watch, frozenset(modules), acted)
        return
    autocast_off.switch_off(watch, acted)
    scaler_off.switch_off(watch, lambda **_: None)
    torch = watch.torch

    def unchanged(self: Any, *_: Any, **__: Any) -> Any:
        acted()
        return self

    for owner in (torch.nn.Module, torch.Tensor):
        owner.half = owner.bfloat16 = unchanged


def _within(watch: Any, named: "frozenset[str]", acted: Any) -> None:
    """Around the modules at these paths of a model that is called: no autocast, inputs in 32 bit."""
    torch = watch.torch
    base = torch.nn.Module
    call = base.__call__
    known: "dict[int, bool]" = {}

    def to_32(value: Any) -> Any:
        return value.float() if isinstance(value, torch.Tensor) and value.is_floating_point() else value

    def chosen(module: Any) -> bool:
        if id(module) not in known:
            known.update((id(child), path in named) for path, child in module.named_modules() if id(child) not in known)
        return known[id(module)]

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or not chosen(self):
            return call(self, *args, **kwargs)
        acted(module=type(self).__name__)
        device = next((value.device.type for value in args if isinstance(value, torch.Tensor)), "cpu")
        with torch.autocast(device, enabled=False):
            return call(self, *map(to_32, args), **{name: to_32(value) for name, value in kwargs.items()})

    base.__call__ = __call__
    watch.skip_when_compiling.append(__call__.__code__)
