"""Functions of ours that stand in the place of torch's: same name, signature and source, and no trace of us in warnings.

Python's `warnings` passes over frames of the import system, which it knows by their file name. A stand-in carries such a name,
so that a warning which torch addresses to its caller still names the user's line.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Callable

_PASSED_OVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "importlib_bootstrap")


def stands_for(original: Any) -> Callable[[Any], Any]:
    """Decorator: the function takes the place of `original`."""

    def place(function: Any) -> Any:
        name = os.path.join(_PASSED_OVER, os.path.basename(function.__code__.co_filename))
        function.__code__ = function.__code__.replace(co_filename=name)
        return functools.update_wrapper(function, original)

    return place
