"""Knob `isolate`: one step with a part of the model alone, in the middle of the real program; then the trial ends.

Changes        what backward goes through: the inputs of the part `first` are cut off from what is before them, and backward starts from the sum
               of the outputs of the part `last`, right where that part returns; without `last` the program's own loss and backward follow
Mechanism      none: it shows which part, alone with the inputs it really gets, already fails
Not applicable when the model has no parts, or is compiled
"""

from __future__ import annotations

import functools
import os
import time
from typing import Any, Callable, Dict, List

LOSSES = ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss", "smooth_l1_loss",
          "huber_loss", "kl_div", "ctc_loss")  # fmt: skip
WRAPPERS = ("module", "_orig_mod", "model")
LOSS = "loss"


def turn(watch: Any, first: str = "", last: str = "", at: int = 0) -> None:
    torch = watch.torch
    base = torch.nn.Module
    call = base.__call__
    parts: Dict[int, str] = {}
    state: Dict[str, Any] = {"model": None, "began": 0.0}

    def say(**what: Any) -> None:
        watch.facts.write("knob_acted", knob="isolate", windows=watch.windows, **what)

    def finish(*_: Any) -> None:
        if state["model"] is not None:
            say(done=True, seconds=time.perf_counter() - state["began"])
            watch.end()
            watch.facts.write("stop", windows=watch.windows, backwards=watch.backwards)
            os._exit(0)

    def cut(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and (value.requires_grad or value.is_floating_point()):
            return value.detach().requires_grad_()
        return tuple(map(cut, value)) if isinstance(value, tuple) else value

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling() or not torch.is_grad_enabled() or watch.windows < at:
            return call(self, *args, **kwargs)
        if state["model"] is None and any(True for _ in self.parameters()):
            state["model"] = self
            parts.update(_parts_of(self))
            say(parts=[[path, type(_at(self, path)).__name__] for path in parts.values()])
        path = parts.get(id(self))
        if path is None:
            return call(self, *args, **kwargs)
        if path == first:
            args, kwargs = cut(args), {name: cut(value) for name, value in kwargs.items()}
        say(entered=path)
        if path == first or not state["began"]:
            state["began"] = time.perf_counter()
        output = call(self, *args, **kwargs)
        say(left=path)
        if path == last:
            _backward_from(torch, output)
            finish()
        return output

    base.__call__ = __call__
    watch.skip_when_compiling.append(__call__.__code__)
    if first == LOSS:
        for name in LOSSES:
            setattr(torch.nn.functional, name, _cut_before(getattr(torch.nn.functional, name), cut, state))
    watch.when_backward_ended.append(finish)


def _cut_before(original: Callable[..., Any], cut: Callable[[Any], Any], state: Dict[str, Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def loss(*args: Any, **kwargs: Any) -> Any:
        state["began"] = time.perf_counter()
        return original(cut(args[0]), *args[1:], **kwargs) if args else original(**{**kwargs, "input": cut(kwargs["input"])})

    return loss


def _parts_of(model: Any) -> Dict[int, str]:
    """The children of a model, by identity; of one that only wraps another, those of the other."""
    prefix = ""
    children = list(model.named_children())
    while len(children) == 1 and (children[0][0] in WRAPPERS or type(children[0][1]).__name__ == "Sequential"):
        prefix += children[0][0] + "."
        children = list(children[0][1].named_children())
    return {id(child): prefix + name for name, child in children}


def _at(model: Any, path: str) -> Any:
    for name in path.split("."):
        model = getattr(model, name)
    return model


def _backward_from(torch: Any, output: Any) -> None:
    """Backward from the sum of all that a part has returned."""
    found: List[Any] = []

    def collect(value: Any) -> None:
        if isinstance(value, torch.Tensor):
            if value.requires_grad and value.is_floating_point():
                found.append(value.float().sum())
        elif isinstance(value, (list, tuple)):
            for item in value:
                collect(item)
        elif isinstance(value, dict):
            collect(list(value.values()))

    collect(output)
    if found:
        torch.autograd.backward([sum(found[1:], found[0])])
