"""Knob `ends-learnt`: the label of an end-of-text token at the end of a row counts.

Changes        labels of -100 at the last real token of a row, where that is the end-of-text token, become this token
Mechanism      ends of texts that are left out of the loss
Not applicable when no model is given such labels
"""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.end_marks import IGNORED, ends_of
from _trainsleuth_inside.knobs.acting import only_in_models, says


def turn(watch: Any) -> None:
    torch = watch.torch
    acted = says(watch, "ends-learnt")

    def around(model: Any, call: Any, args: Any, kwargs: Any) -> Any:
        found = ends_of(torch, model, kwargs)
        if found is not None:
            end, rows, last, ends = found
            labels = kwargs["labels"].clone()
            left_out = ends & (labels[rows, last] == IGNORED)
            labels[rows[left_out], last[left_out]] = end
            acted()
            kwargs = {**kwargs, "labels": labels}
        return call(model, *args, **kwargs)

    only_in_models(watch, around)
