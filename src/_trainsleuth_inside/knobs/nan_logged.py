"""Knob `nan-logged`: the Hugging Face Trainer logs what the loss is, also where it is not finite.

Changes        `logging_nan_inf_filter` is off
Mechanism      losses that the log shows as another number
Not applicable when no training arguments are made, or the filter is off
"""

from __future__ import annotations

import functools
from typing import Any

from _trainsleuth_inside.import_hooks import after_import
from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    acted = says(watch, "nan-logged")

    def loaded(module: Any) -> None:
        finish = module.TrainingArguments.__post_init__

        @functools.wraps(finish)
        def __post_init__(self: Any, *args: Any, **kwargs: Any) -> None:
            finish(self, *args, **kwargs)
            if self.logging_nan_inf_filter:
                self.logging_nan_inf_filter = False
                acted()

        module.TrainingArguments.__post_init__ = __post_init__

    after_import("transformers.training_args", loaded)
