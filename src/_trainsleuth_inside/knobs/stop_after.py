"""Ends a trial after so many windows: the facts are written, and the process is gone before its next step."""

from __future__ import annotations

import os
from typing import Any

from _trainsleuth_inside.guard import Probe


def turn(watch: Any, probe: Probe, windows: int = 0, backwards: int = 0) -> None:
    def enough(*_: Any) -> None:
        if (windows and watch.windows >= windows) or (backwards and watch.backwards >= backwards):
            watch.end()
            watch.facts.write("stop", windows=watch.windows, backwards=watch.backwards)
            os._exit(0)

    watch.when_window_closes.append(probe.guard(enough))
    watch.when_backward_ended.append(probe.guard(enough))
