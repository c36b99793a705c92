"""Knob `environment`: environment variables are set, or kept away, whatever the program itself does with them.

Changes        the named variables, from before the program's first line; a later assignment by the program has no effect
Mechanism      what the variable stands for: a limit of threads, a switch of a library
Not applicable when a variable that is to be removed was never there
"""

from __future__ import annotations

import os
from typing import Any, Dict, Optional

from _trainsleuth_inside.knobs.acting import says_early


def begin(facts: Any, values: Dict[str, Optional[str]]) -> None:
    acted = says_early(facts, "environment")
    environ: Any = type(os.environ)
    put = environ.__setitem__

    def __setitem__(self: Any, name: str, value: str) -> None:
        if name not in values:
            put(self, name, value)
        elif value != values[name]:
            acted(variable=name)

    for name, value in values.items():
        if value is not None:
            put(os.environ, name, value)
            acted(variable=name)
        elif os.environ.pop(name, None) is not None:
            acted(variable=name)
    environ.__setitem__ = __setitem__
