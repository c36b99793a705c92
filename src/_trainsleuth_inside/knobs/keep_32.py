"""Knob `keep-32`: the named modules compute in 32 bit, everything else stays as it is.

Changes        inside the modules (`DBNet.head.binarize`, or the path in the model alone: `head.binarize`) autocast is off, and what they are
               given is cast to 32 bit; with `back`, what they return is cast to 16 bit again, so that what follows computes in 16 bit
Mechanism      dtype in which these modules compute
Not applicable when no module has such a name, or nothing is cast to 16 bit there
"""

from __future__ import annotations

from typing import Any, Sequence

from _trainsleuth_inside.addresses import Addresses, path_in
from _trainsleuth_inside.knobs.acting import says

HALVES = ("torch.float16", "torch.bfloat16")


def turn(watch: Any, modules: Sequence[str] = (), back: bool = False) -> None:
    torch = watch.torch
    acted = says(watch, "keep-32")
    base = torch.nn.Module
    call = base.__call__
    named = frozenset(modules)
    book = Addresses()
    state = {"root": None, "kept": False}

    def chosen(address: str) -> bool:
        return address in named or path_in(address) in named

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or state["kept"]:
            return call(self, *args, **kwargs)
        outermost = state["root"] is None
        if outermost:
            state["root"] = self
        try:
            if not chosen(book.of(self, state["root"])):
                return call(self, *args, **kwargs)
            state["kept"] = True
            try:
                return kept(self, args, kwargs)
            finally:
                state["kept"] = False
        finally:
            if outermost:
                state["root"] = None

    def kept(module: Any, args: Any, kwargs: Any) -> Any:
        device = device_of(torch, module, (args, kwargs))
        half = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
        if half is not None or has_half(torch, (args, kwargs)):
            acted(module=type(module).__name__)
        with torch.autocast(device, enabled=False):
            output = call(module, *to_32(torch, args), **to_32(torch, kwargs))
        if back and half is not None:
            return changed(torch, output, lambda tensor: tensor.to(half) if tensor.dtype == torch.float32 else tensor)
        return output

    base.__call__ = __call__
    watch.skip_when_compiling.append(__call__.__code__)


def tensors(torch: Any, value: Any) -> Any:
    """Every tensor in a structure of lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(torch, item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors(torch, item)


def changed(torch: Any, value: Any, change: Any) -> Any:
    """The same structure with each tensor changed; what is no plain list, tuple or dict stays as it is."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(changed(torch, item, change) for item in value)
    if type(value) is dict:
        return {name: changed(torch, item, change) for name, item in value.items()}
    return value


def to_32(torch: Any, value: Any) -> Any:
    return changed(torch, value, lambda tensor: tensor.float() if str(tensor.dtype) in HALVES else tensor)


def has_half(torch: Any, value: Any) -> bool:
    return any(str(tensor.dtype) in HALVES for tensor in tensors(torch, value))


def device_of(torch: Any, module: Any, given: Any) -> str:
    tensor = next(tensors(torch, given), None)
    if tensor is None:
        tensor = next(module.parameters(), None)
    return "cpu" if tensor is None else str(tensor.device.type)
