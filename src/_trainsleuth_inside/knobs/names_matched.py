"""Knob `names-matched`: weights whose names differ by a prefix from those that a module knows are loaded under the module's names.

Changes        the names in a state dict that `load_state_dict(…, strict=False)` is given: a prefix is taken away or put before them
Mechanism      tensors of the file that the module does not know
Not applicable when no prefix makes names fit
"""

from __future__ import annotations

import functools
from typing import Any

from _trainsleuth_inside.knobs.acting import says
from _trainsleuth_inside.state_names import compare


def turn(watch: Any) -> None:
    base = watch.torch.nn.Module
    load = base.load_state_dict
    acted = says(watch, "names-matched")

    @functools.wraps(load)
    def load_state_dict(self: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        names = compare(state_dict, self.state_dict())
        if names.fits and not kwargs.get("strict", args[0] if args else True):
            acted(removes=names.removes, adds=names.adds)
            cut = len(names.removes)
            state_dict = {names.adds + (name[cut:] if name.startswith(names.removes) else name): tensor for name, tensor in state_dict.items()}
        return load(self, state_dict, *args, **kwargs)

    base.load_state_dict = load_state_dict
