"""What the knobs share: they say once what they did, and know which of the user's lines they are about."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any, Callable, List, Optional, Sequence, Tuple

from _trainsleuth_inside import places

Line = Tuple[str, int]
LOSSES = ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss",
          "smooth_l1_loss", "huber_loss", "kl_div")  # fmt: skip


def lines(at: Sequence[Sequence[Any]]) -> List[Line]:
    return [(str(entry[0]), int(entry[1])) for entry in at]


def called_from(wanted: List[Line], skip: int = 2) -> Optional[places.Place]:
    """The user's line that led here, if it is one of the wanted ones, or if none is named."""
    place = places.of_frame(sys._getframe(skip))
    if place is None or (wanted and (place[0], place[1]) not in wanted):
        return None
    return place


def holds_line(code: Any, wanted: List[Line]) -> bool:
    """Whether one of the lines is part of this function."""
    last = max((line for _, _, line in code.co_lines() if line), default=0) if hasattr(code, "co_lines") else 0
    return any(file == code.co_filename and code.co_firstlineno <= line <= last for file, line in wanted)


def says(watch: Any, knob: str) -> Callable[..., None]:
    """A function that records, once, that the knob had something to change; a trial without this fact is not applicable."""

    def acted(**what: Any) -> None:
        watch.facts.once(("knob", knob), "knob_acted", knob=knob, windows=watch.windows, **what)

    return acted


def says_early(facts: Any, knob: str) -> Callable[..., None]:
    """The same for a knob that is set before torch is there."""

    def acted(**what: Any) -> None:
        facts.once(("knob", knob), "knob_acted", knob=knob, windows=0, **what)

    return acted


def only_in_models(watch: Any, around: Callable[[Any, Callable[..., Any], Any, Any], Any]) -> None:
    """Put `around(model, call, args, kwargs)` around each call of a model by the program itself, not from inside another model."""
    base = watch.torch.nn.Module
    call = base.__call__
    compiling = watch.torch.compiler.is_compiling
    state = {"inside": False}

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if compiling() or state["inside"] or isinstance(self, watch.torch.nn.modules.loss._Loss):
            return call(self, *args, **kwargs)
        state["inside"] = True
        try:
            return around(self, call, args, kwargs)
        finally:
            state["inside"] = False

    functools.update_wrapper(__call__, call)
    base.__call__ = __call__
    watch.skip_when_compiling.append(__call__.__code__)


def before_each_step(watch: Any, prepare: Callable[[Any], None]) -> None:
    """Call `prepare(optimizer)` right before each step of an optimizer."""
    hooks = importlib.import_module("torch.optim.optimizer")
    hooks.register_optimizer_step_pre_hook(lambda optimizer, *_: prepare(optimizer))


def after_each_step(watch: Any, follow: Callable[[Any], None]) -> None:
    hooks = importlib.import_module("torch.optim.optimizer")
    hooks.register_optimizer_step_post_hook(lambda optimizer, *_: follow(optimizer))


def around_losses(watch: Any, names: Sequence[str], prepare: Callable[[str, Any, Any], Tuple[Any, Any]]) -> None:
    """Let `prepare(name, input, target)` change what the loss functions of these names are given."""
    functional = watch.torch.nn.functional
    for name in names:
        setattr(functional, name, _prepared(getattr(functional, name), name, prepare))


def _prepared(original: Callable[..., Any], name: str, prepare: Callable[[str, Any, Any], Tuple[Any, Any]]) -> Callable[..., Any]:
    @functools.wraps(original)
    def loss(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        input, target = prepare(name, input, target)
        return original(input, target, *args, **kwargs)

    return loss
