"""Records which line sets `requires_grad` to False, while the model is being built.

Setting the attribute runs in C; a property on `nn.Parameter` sees it. The property is there until the first backward only,
and never while something is compiled.
"""

from __future__ import annotations

import sys
from typing import Any

from _trainsleuth_inside import places
from _trainsleuth_inside.guard import Probe
from _trainsleuth_inside.standing import stands_for
from _trainsleuth_inside.watch import Watch


def install(watch: Watch, probe: Probe) -> None:
    torch = watch.torch
    parameter = torch.nn.Parameter
    aside = watch.aside
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
