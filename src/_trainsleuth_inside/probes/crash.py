"""Records the exception that ends the program: its kind, message, and the user's lines of its traceback."""

from __future__ import annotations

import math
import sys
from typing import Any, Dict, List, Optional

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
                    labels=_labels_at_the_loss(traceback), bad_values=_bad_values(traceback),
                )  # fmt: skip
        except Exception as problem:
            facts.write("probe_off", probe="crash", why=repr(problem)[:300])
        previous(kind, value, places.without_us(traceback))

    sys.excepthook = excepthook


def _bad_values(traceback: Any) -> List[str]:
    """Names of single numbers in the program's own frames that are NaN or infinite: perhaps the program stopped because of them."""
    found: List[str] = []
    while traceback is not None:
        frame = traceback.tb_frame
        if places.kind_of(frame.f_code.co_filename) == places.USER:
            for name, value in list(frame.f_locals.items())[:MOST_LOCALS]:
                if type(value).__name__ in ("Tensor", "Parameter") and value.numel() == 1 and value.device.type == "cpu":
                    value = value.item()
                if isinstance(value, float) and not math.isfinite(value) and name not in found:
                    found.append(name)
        traceback = traceback.tb_next
    return found[:8]


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
