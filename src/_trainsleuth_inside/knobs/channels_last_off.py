"""Knob `channels-last-off`: tensors and models keep the ordinary layout of memory.

Changes        `memory_format` of `.to()` and `.contiguous()`: channels_last and channels_last_3d are not applied
Mechanism      tensors whose channels come last
Not applicable when the program never asks for that layout
"""

from __future__ import annotations

import functools
from typing import Any, Callable

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    torch = watch.torch
    acted = says(watch, "channels-last-off")
    last = (torch.channels_last, torch.channels_last_3d)

    def plain(original: Callable[..., Any], instead: Any) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("memory_format") in last:
                acted()
                kwargs = {**kwargs, "memory_format": instead}
            return original(*args, **kwargs)

        return call

    torch.nn.Module.to = plain(torch.nn.Module.to, None)
    torch.Tensor.to = plain(torch.Tensor.to, torch.preserve_format)
    torch.Tensor.contiguous = plain(torch.Tensor.contiguous, torch.contiguous_format)
