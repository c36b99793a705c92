"""Knob `batch-first`: attention and recurrent modules take the first axis for the samples, where it is as long as the batch of the model.

Changes        `batch_first` of modules whose input has as many rows as that of the model, and another second axis
Mechanism      modules that take the samples of a batch for steps
Not applicable when no such module is called
"""

from __future__ import annotations

import functools
from typing import Any, List

from _trainsleuth_inside.knobs.acting import only_in_models, says


def turn(watch: Any) -> None:
    torch = watch.torch
    acted = says(watch, "batch-first")
    rows: List[int] = [0]

    def around(model: Any, call: Any, args: Any, kwargs: Any) -> Any:
        given = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor) and value.dim()]
        rows[0] = given[0].shape[0] if given else 0
        return call(model, *args, **kwargs)

    def turned(original: Any) -> Any:
        @functools.wraps(original)
        def forward(self: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
            fits = isinstance(input, torch.Tensor) and input.dim() == 3 and input.shape[0] == rows[0] and 1 < input.shape[1] != rows[0]
            if fits and not self.batch_first:
                self.batch_first = True
                acted(module=type(self).__name__)
            return original(self, input, *args, **kwargs)

        return forward

    for kind in (torch.nn.MultiheadAttention, torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        kind.forward = turned(kind.forward)
    only_in_models(watch, around)
