"""Records whether a state dict that is loaded again still is the module's own live weights: then nothing comes back.

`state_dict()` hands out the parameters themselves, not copies. Who keeps one, trains on or loads other weights, and loads it again, loads each
parameter into itself.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any, Dict, Optional, Tuple

from _trainsleuth_inside import places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch

MOST_KEPT = 64
COMPARED = 8  # tensors of a state dict


def install(watch: Watch, probe: Probe) -> None:
    torch = watch.torch
    base = torch.nn.Module
    given_out: Dict[int, Tuple[Any, int, Optional[places.Place]]] = {}  # by its first tensor: that one, its version then, and the line
    kept = base.state_dict

    @stands_for(kept)
    def state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = kept(self, *args, **kwargs)
        if not args and "destination" not in kwargs and not watch.aside():
            handed_out(result)
        return result

    @probe.guard
    def handed_out(state: Any) -> None:
        first = _first(torch, state)
        if first is not None:
            given_out.pop(id(first), None)
            if len(given_out) >= MOST_KEPT:
                for key in [key for key, (reference, _, _) in given_out.items() if reference() is None] or list(given_out)[:1]:
                    del given_out[key]
            given_out[id(first)] = (weakref.ref(first), first._version, places.of_frame(sys._getframe(2)))

    base.state_dict = state_dict

    load = base.load_state_dict

    @stands_for(load)
    def load_state_dict(self: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        if not watch.aside():
            loading(self, state_dict)
        return load(self, state_dict, *args, **kwargs)

    @probe.guard
    def loading(module: Any, state: Any) -> None:
        first = _first(torch, state)
        reference, version, at = given_out.get(id(first), (None, 0, None))
        if reference is None or reference() is not first or first._version == version:
            return
        own = {name: parameter for name, parameter in module.named_parameters() if name in state}
        compared = list(own.items())[:COMPARED]
        if compared and all(_is_the_same(torch, state[name], parameter) for name, parameter in compared):
            watch.facts.write(
                "loaded_itself", at=places.of_frame(sys._getframe(2)), kept_at=at, kind=type(module).__name__, tensors=len(own),
                windows=watch.windows,
            )  # fmt: skip

    base.load_state_dict = load_state_dict


def _first(torch: Any, state: Any) -> Any:
    """The first tensor of numbers that can change; its versions count the changes of the weight itself."""
    if not hasattr(state, "values"):
        return None
    return next((value for value in state.values() if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel()), None)


def _is_the_same(torch: Any, tensor: Any, parameter: Any) -> bool:
    if not isinstance(tensor, torch.Tensor) or tensor.shape != parameter.shape or tensor.device != parameter.device:
        return False
    return bool(tensor.data_ptr() == parameter.data_ptr())
