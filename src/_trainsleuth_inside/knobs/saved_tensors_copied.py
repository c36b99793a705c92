"""Knob `saved-tensors-copied`: autograd keeps a copy of each tensor that it saves for backward.

Changes        a later change in place no longer reaches what backward uses
Mechanism      a tensor that is changed between the forward that saves it and the backward that needs it
Not applicable when nothing is saved
"""

from __future__ import annotations

from typing import Any

from _trainsleuth_inside.knobs.acting import says


def turn(watch: Any) -> None:
    acted = says(watch, "saved-tensors-copied")

    def copied(tensor: Any) -> Any:
        acted()
        return tensor.clone()

    watch.torch.autograd.graph.saved_tensors_hooks(copied, lambda tensor: tensor).__enter__()
