"""No knob but a setting of every trial, the control included: facts are written window by window, so that short runs compare.

A program that never steps has no windows; then they are written backward by backward, up to a limit.
"""

from __future__ import annotations

from typing import Any

MOST = 4000


def turn(watch: Any) -> None:
    def soon(*_: Any) -> None:
        if watch.windows + watch.backwards < MOST:
            watch.flush_soon()

    watch.when_window_closes.append(soon)
    watch.when_backward_ended.append(lambda loss: soon() if watch.windows == 0 else None)
