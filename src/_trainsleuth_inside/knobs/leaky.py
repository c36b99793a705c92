"""Knob `leaky`: a rectifier lets a tenth of what is negative through.

Changes        `relu` as a module, a function and a method
Mechanism      units that are zero for every sample
Not applicable when the model has no ReLU
"""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.knobs.acting import says

SLOPE = 0.1


def turn(watch: Any) -> None:
    torch = watch.torch
    functional = torch.nn.functional
    acted = says(watch, "leaky")

    def leaky(input: Any, inplace: bool = False) -> Any:
        acted()
        return functional.leaky_relu(input, SLOPE)

    functional.relu = torch.relu = torch.Tensor.relu = leaky
