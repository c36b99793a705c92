"""Knob `schedule-holds`: a schedule that is stepped beyond its end keeps its last learning rate.

Changes        steps of `OneCycleLR` behind its last one do nothing
Mechanism      steps of a schedule behind its end
Not applicable when no schedule comes to its end
"""

from __future__ import annotations

import functools
from typing import Any

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    acted = says(watch, "schedule-holds")
    kind = watch.torch.optim.lr_scheduler.OneCycleLR
    step = kind.step

    @functools.wraps(step)
    def step_or_stay(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.last_epoch + 1 > self.total_steps - 1 and not args and not kwargs:
            acted(total=self.total_steps)
            return None
        return step(self, *args, **kwargs)

    kind.step = step_or_stay
