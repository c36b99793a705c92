"""Knob `precision-bf16`: models are called under autocast to bfloat16.

Changes        each call of a model by the program, with gradients or without, runs inside `torch.autocast` with that dtype
Mechanism      dtype in which layers compute
Not applicable when the model computes in that precision already, or its device has no such kernels
"""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.knobs.acting import says
from _trainsleuth_inside.knobs.half import call_under_autocast


def turn(watch: Any) -> None:
    call_under_autocast(watch, watch.torch.bfloat16, says(watch, "precision-bf16"))
