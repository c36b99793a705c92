"""Knob `checkpointing-off`: activations are kept, not computed again in backward.

Changes        `torch.utils.checkpoint.checkpoint` and `checkpoint_sequential` just call what they are given
Mechanism      forwards that run a second time
Not applicable when nothing is checkpointed
"""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside import import_hooks
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.knobs.acting import says

SETTINGS = ("use_reentrant", "context_fn", "determinism_check", "debug", "preserve_rng_state", "early_stop")


def turn(watch: Any) -> None:
    acted = says(watch, "checkpointing-off")

    def checkpoint(function: Any, *args: Any, **kwargs: Any) -> Any:
        acted()
        return function(*args, **{name: value for name, value in kwargs.items() if name not in SETTINGS})

    def checkpoint_sequential(functions: Any, segments: int, input: Any, **_: Any) -> Any:
        acted()
        for function in functions.children() if isinstance(functions, watch.torch.nn.Sequential) else functions:
            input = function(input)
        return input

    def replace(module: Any) -> None:
        module.checkpoint, module.checkpoint_sequential = checkpoint, checkpoint_sequential

    import_hooks.after_import("torch.utils.checkpoint", Probe("checkpointing-off", watch.facts).guard(replace))
