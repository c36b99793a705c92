"""Notices where the program switches gradients off: what follows may be a validation, and is looked at.

A validation that calls `eval()` announces itself. One that forgot to is the one that must be seen, and nothing else tells when it begins.
"""

from __future__ import annotations

import sys
from typing import Any

from _trainsleuth_inside import places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch


def install(watch: Watch, probe: Probe) -> None:
    for owner in (watch.torch.no_grad, watch.torch.inference_mode):
        owner.__enter__ = _standing_for(owner.__enter__, watch, probe)


def _standing_for(enter: Any, watch: Watch, probe: Probe) -> Any:
    aside = watch.aside

    @probe.guard
    def switched_off() -> None:
        watch.phase_begins(places.of_frame(sys._getframe(3)))

    @stands_for(enter)
    def __enter__(self: Any) -> Any:
        if watch.resting and not aside():
            switched_off()
        return enter(self)

    return __enter__
