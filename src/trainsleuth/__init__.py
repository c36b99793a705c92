"""TrainSleuth: why is this training run sick, and what cures it?"""

from typing import Any

__version__ = "0.1.0"

_LAZY = {"StepLogger": "trainsleuth.stepping"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
