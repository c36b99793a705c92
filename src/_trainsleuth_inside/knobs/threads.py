"""Knob `threads`: torch computes with so many threads, whatever the program asks for.

Changes        `torch.set_num_threads`, which is called at the start and answers the program's own calls with our number
Mechanism      threads that torch counts on
Not applicable when torch would use that number anyway
"""

from __future__ import annotations

import functools
from typing import Any

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any, count: int = 1) -> None:
    torch = watch.torch
    acted = says(watch, "threads")
    original = torch.set_num_threads
    if torch.get_num_threads() != count:
        acted(before=torch.get_num_threads(), count=count)
    original(count)

    @functools.wraps(original)
    def set_num_threads(asked: int) -> None:
        if asked != count:
            acted(before=asked, count=count)
        original(count)

    torch.set_num_threads = set_num_threads
