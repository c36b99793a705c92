"""Knob `finite-weights`: weights that are not finite before the first step are replaced.

Changes        NaN and Inf in parameters, and NaN in buffers, become the mean of what is finite in the same tensor, until the first step is made
Mechanism      weights that are not finite from the start
Not applicable when all of them are finite
"""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.knobs.acting import only_in_models, says


def turn(watch: Any) -> None:
    torch = watch.torch
    acted = says(watch, "finite-weights")

    def mend(tensor: Any, bad: Any) -> None:
        if bool(bad.any()):
            rest = tensor[~bad & torch.isfinite(tensor)]
            tensor[bad] = rest.float().mean().to(tensor.dtype) if rest.numel() else 0.0
            acted()

    def around(model: Any, call: Any, args: Any, kwargs: Any) -> Any:
        if not watch.windows:
            with torch.no_grad():
                for parameter in model.parameters():
                    mend(parameter.data, ~torch.isfinite(parameter.data))
                for buffer in model.buffers():
                    if buffer.is_floating_point():
                        mend(buffer, torch.isnan(buffer))  # a mask may hold infinite numbers on purpose
        return call(model, *args, **kwargs)

    only_in_models(watch, around)
