"""Knob `loss-in-32-bits`: loss functions compute in 32 bit.

Changes        what a loss function of torch.nn.functional is given in 16 bit is cast to 32, and autocast is off inside it
Mechanism      dtype in which the loss is computed
Not applicable when no loss function of torch is given 16 bit
"""

from __future__ import annotations

import functools
from typing import Any

from _trainsleuth_inside.knobs.acting import says

NAMES = (
    "cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss", "smooth_l1_loss",
    "huber_loss", "kl_div", "ctc_loss", "poisson_nll_loss", "gaussian_nll_loss", "log_softmax", "softmax", "cosine_similarity",
)  # fmt: skip


def turn(watch: Any) -> None:
    torch = watch.torch
    acted = says(watch, "loss-in-32-bits")
    for name in NAMES:
        original = getattr(torch.nn.functional, name)
        setattr(torch.nn.functional, name, _in_32_bits(torch, original, acted))


def _in_32_bits(torch: Any, original: Any, acted: Any) -> Any:
    def wide(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.element_size() < 4:
            acted()
            return value.float()
        return value

    @functools.wraps(original)
    def loss(*args: Any, **kwargs: Any) -> Any:
        device = next((value.device.type for value in args if isinstance(value, torch.Tensor)), "cpu")
        with torch.autocast(device, enabled=False):
            return original(*map(wide, args), **{name: wide(value) for name, value in kwargs.items()})

    return loss
