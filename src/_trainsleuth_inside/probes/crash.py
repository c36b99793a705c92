"""Records how the program ends itself: by an exception, or by sys.exit with a bad number at hand; with the user's own lines."""

from __future__ import annotations

import math
import sys
from itertools import islice
from typing import Any, Dict, Iterator, List, NoReturn, Optional, Tuple

from _trainsleuth_inside import places
from _trainsleuth_inside.facts import FactWriter

MOST_LOCALS = 400
LOSS_FRAMES = frozenset({"cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"})


def install(facts: FactWriter) -> None:
    previous = sys.excepthook

    def excepthook(kind: Any, value: Any, traceback: Any) -> None:
        try:
            if issubclass(kind, KeyboardInterrupt):
                facts.write("interrupted")
            elif not issubclass(kind, SystemExit):
                facts.write(
                    "crash", kind=kind.__name__, message=str(value)[:2000], frames=places.user_frames(traceback)[-20:],
                    labels=_labels_at_the_loss(traceback), bad_values=_names(frames_of(traceback)),
                )  # fmt: skip
        except Exception as problem:
            facts.write("probe_off", probe="crash", why=repr(problem)[:300])
        previous(kind, value, places.without_us(traceback))

    sys.excepthook = excepthook
    leave = sys.exit

    def exit(status: Any = None, /) -> NoReturn:
        try:
            frames = frames_above(sys._getframe(1))
            names = _names(frames) if status not in (None, 0, False) else []
            if names:
                facts.write("quit", status=str(status)[:300], at=places.of_frame(sys._getframe(1)), bad_values=names)
        except Exception as problem:
            facts.write("probe_off", probe="crash", why=repr(problem)[:300])
        leave(status)

    sys.exit = exit


def frames_of(traceback: Any) -> List[Any]:
    found: List[Any] = []
    while traceback is not None:
        found.append(traceback.tb_frame)
        traceback = traceback.tb_next
    return found


def frames_above(frame: Any) -> List[Any]:
    """Of a stack, outermost first."""
    found: List[Any] = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found[::-1]


def bad_values(frames: List[Any]) -> Iterator[Tuple[str, Any]]:
    """Single numbers in the program's own frames that are NaN or infinite, innermost frame first: perhaps it stopped because of them."""
    for frame in reversed(frames):
        if places.kind_of(frame.f_code.co_filename) == places.USER:
            for name, value in islice(_held(frame), MOST_LOCALS):
                single = type(value).__name__ in ("Tensor", "Parameter") and value.numel() == 1 and value.device.type == "cpu"
                number = value.item() if single else value
                if isinstance(number, float) and (math.isnan(number) or (single and math.isinf(number))):
                    yield name, value


def _held(frame: Any) -> Iterator[Tuple[str, Any]]:
    """Its variables, and what the object it is a method of has computed: a trainer may keep its loss in `self`.

    Only what has a graph behind it: infinity and NaN are also what many a best score begins with.
    """
    variables = frame.f_locals
    yield from list(variables.items())
    name = frame.f_code.co_varnames[0] if frame.f_code.co_argcount else ""
    holds = getattr(variables.get(name), "__dict__", None)
    if type(holds) is dict:
        yield from ((f"{name}.{key}", value) for key, value in list(holds.items()) if getattr(value, "grad_fn", None) is not None)


def _names(frames: List[Any]) -> List[str]:
    return list(dict.fromkeys(name for name, _ in bad_values(frames)))[:8]


def _labels_at_the_loss(traceback: Any) -> Optional[Dict[str, Any]]:
    """If a loss function raised: the range of the labels it was given, and the classes it knows."""
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code.co_name in LOSS_FRAMES and "torch" in frame.f_code.co_filename:
            inputs, target = frame.f_locals.get("input"), frame.f_locals.get("target")
            if inputs is not None and target is not None and target.device.type == "cpu" and target.numel():
                return {
                    "function": frame.f_code.co_name,
                    "classes": int(inputs.shape[1]) if inputs.dim() > 1 else int(inputs.shape[0]),
                    "least": float(target.min()),
                    "most": float(target.max()),
                    "input_shape": list(inputs.shape),
                    "target_shape": list(target.shape),
                }
        traceback = traceback.tb_next
    return None
