"""Records which line sets `requires_grad` to False, while the model is being built, and which sets it on a module, where it means nothing.

Setting the attribute of a parameter runs in C; a property on `nn.Parameter` sees it. The property is there until the first backward only,
and never while something is compiled. `module.requires_grad = True` only makes an attribute that torch never reads (what was meant is
`module.requires_grad_(True)`); a descriptor on `nn.Module` sees it, at any time, and keeps the attribute where it would be without us.
"""

from __future__ import annotations

import sys
from typing import Any, Callable

from _trainsleuth_inside import places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch


class Attribute:
    """`requires_grad` of modules: an attribute as any other, and who sets it is told. No `property`: torch.jit would compile that."""

    def __init__(self, told: Callable[[Any, Any], None]) -> None:
        self._told = told

    def __get__(self, this: Any, kind: Any = None) -> Any:
        try:
            return this.__dict__["requires_grad"]
        except (AttributeError, KeyError):
            raise AttributeError("requires_grad") from None

    def __set__(self, this: Any, value: Any) -> None:
        this.__dict__["requires_grad"] = value
        self._told(this, value)

    def __delete__(self, this: Any) -> None:
        try:
            del this.__dict__["requires_grad"]
        except KeyError:
            raise AttributeError("requires_grad") from None


def _own_attribute(frame: Any, module: Any) -> bool:
    """Whether a method of the module itself sets it: then it is a setting of that class, with a meaning of its own."""
    code = frame.f_code
    return bool(code.co_argcount) and frame.f_locals.get(code.co_varnames[0]) is module


def install(watch: Watch, probe: Probe) -> None:
    torch = watch.torch
    modules = torch.nn.Module
    aside = watch.aside

    @probe.guard
    def switched(module: Any, value: Any) -> None:
        frame: Any = sys._getframe(1)
        while places.kind_of(frame.f_code.co_filename) == places.OURS or frame.f_code.co_name == "__setattr__":
            frame = frame.f_back
        if isinstance(value, bool) and not _own_attribute(frame, module):
            numbers = [watch.parameters.number(parameter) for parameter in module.parameters()]
            watch.facts.write("module_switched", at=places.of_frame(frame), kind=type(module).__name__, value=value, params=numbers[:4000])

    def told(module: Any, value: Any) -> None:
        if not aside():
            switched(module, value)

    listed = modules.__dir__

    @stands_for(listed)
    def __dir__(this: Any) -> Any:
        return [name for name in listed(this) if name != "requires_grad" or name in this.__dict__]

    if "requires_grad" not in vars(modules):
        modules.requires_grad = Attribute(told)
        modules.__dir__ = __dir__

    parameter = torch.nn.Parameter
    attribute = torch._C.TensorBase.requires_grad

    @probe.guard
    def froze(this: Any) -> None:
        watch.parameters.record(this).frozen_at = places.of_frame(sys._getframe(3))

    def get(this: Any) -> Any:
        return attribute.__get__(this)

    def put(this: Any, value: Any) -> None:
        attribute.__set__(this, value)
        if not value and not aside():
            froze(this)

    method = torch.Tensor.requires_grad_

    @stands_for(method)
    def requires_grad_(this: Any, *args: Any, **kwargs: Any) -> Any:
        result = method(this, *args, **kwargs)
        if not aside() and is_frozen(result):
            froze(this)
        return result

    @probe.guard
    def is_frozen(this: Any) -> bool:
        with watch.plainly():
            return not attribute.__get__(this)

    parameter.requires_grad = property(get, put)
    parameter.requires_grad_ = requires_grad_

    def remove(*_: Any) -> None:
        for name in ("requires_grad", "requires_grad_"):
            if name in parameter.__dict__:
                delattr(parameter, name)
        if remove in watch.when_backward_ended:
            watch.when_backward_ended.remove(remove)

    watch.when_backward_ended.append(remove)
    watch.when_compiling.append(remove)
