"""Knob `compile-off`: nothing is compiled.

Changes        `torch.compile` and `Module.compile` return what they were given
Mechanism      whether code that a compiler made is run
Not applicable when nothing is compiled
"""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    torch = watch.torch
    acted = says(watch, "compile-off")

    def compile(model: Any = None, **options: Any) -> Any:
        acted()
        return (lambda function: function) if model is None else model

    def compile_module(self: Any, *args: Any, **options: Any) -> None:
        acted()

    torch.compile = compile
    torch.nn.Module.compile = compile_module
