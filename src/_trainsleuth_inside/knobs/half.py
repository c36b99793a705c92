"""What the knobs of half precision share: a model is called inside an autocast region."""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.knobs.acting import only_in_models


def call_under_autocast(watch: Any, dtype: Any, acted: Any) -> None:
    torch = watch.torch

    def around(model: Any, call: Any, args: Any, kwargs: Any) -> Any:
        parameter = next(model.parameters(), None)
        device = "cpu" if parameter is None else parameter.device.type
        if torch.is_autocast_enabled(device) and torch.get_autocast_dtype(device) == dtype:
            return call(model, *args, **kwargs)
        acted(dtype=str(dtype))
        with torch.autocast(device, dtype=dtype):
            return call(model, *args, **kwargs)

    only_in_models(watch, around)
