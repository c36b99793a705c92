"""Knob `inputs-turned-round`: each sample gets the input of another one, while its target stays.

Changes        the order of the samples in the first tensor that a model is called with, and in those that go with it, in training
Mechanism      the dependence of the output on the input: if the losses stay the same to the last digits, there is none
Not applicable when a model is called with a single sample, or computes its loss itself: targets would be exchanged along with the inputs
"""

from __future__ import annotations

from typing import Any, Dict, Tuple

from _trainsleuth_inside.knobs.acting import LOSSES, around_losses, only_in_models, says

LABELS = ("labels", "label", "targets", "target")  # what Hugging Face, and many others, call the targets that a model is given itself


def turn(watch: Any) -> None:
    torch = watch.torch
    acted = says(watch, "inputs-turned-round")
    state: Dict[str, bool] = {"inside": False, "has labels": False, "own loss": False}

    def turned(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dim() < 2 or value.shape[0] < 2:
            return value
        return value.flip(0)

    def around(model: Any, call: Any, args: Any, kwargs: Any) -> Any:
        if not torch.is_grad_enabled() or state["own loss"]:
            return call(model, *args, **kwargs)
        state["has labels"] = any(name in LABELS for name in kwargs)
        others = tuple(map(turned, args)), {name: value if name in LABELS else turned(value) for name, value in kwargs.items()}
        state["inside"] = True
        try:
            out = call(model, *others[0], **others[1])
        finally:
            state["inside"] = False
        if not state["own loss"]:
            acted()
        return out

    def prepare(name: str, input: Any, target: Any) -> Tuple[Any, Any]:
        if state["inside"] and not state["has labels"]:
            state["own loss"] = True
        return input, target

    only_in_models(watch, around)
    around_losses(watch, LOSSES, prepare)
