"""Knob `no-step-withheld`: Accelerate lets an optimizer step whenever the program says so.

Changes        each micro-batch completes an accumulation for Accelerate; its loss is divided as before
Mechanism      steps that are asked for and not made
Not applicable when Accelerate withholds no step
"""

from __future__ import annotations

import functools
from typing import Any

from _trainsleuth_inside.import_hooks import after_import
from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    acted = says(watch, "no-step-withheld")

    def loaded(module: Any) -> None:
        decide = module.Accelerator._do_sync

        @functools.wraps(decide)
        def _do_sync(self: Any, *args: Any, **kwargs: Any) -> None:
            decide(self, *args, **kwargs)
            if not self.gradient_state.sync_gradients:
                acted(accumulates=self.gradient_state.num_steps)
                self.gradient_state._set_sync_gradients(True)

        module.Accelerator._do_sync = _do_sync

    after_import("accelerate.accelerator", loaded)
