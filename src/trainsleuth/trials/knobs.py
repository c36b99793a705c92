"""The knobs that trials can turn, what each changes, and which suspected causes it settles.

The actuators themselves run inside the program: `_trainsleuth_inside/knobs/`, one file each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Pointed(Protocol):
    """A line of a finding."""

    file: str
    line: int
    code: str
    note: str


@dataclass(frozen=True)
class Knob:
    name: str
    label: str
    changes: str
    mechanism: str
    settles: tuple[str, ...] = ()

    def options(self, where: Sequence[Pointed]) -> dict[str, Any]:
        """What the actuator must know of the finding."""
        if self.name == "unfreeze":  # without a line that freezes, whatever the user's own files freeze
            return {"at": [[p.file, p.line] for p in where if "requires_grad" in p.code or "freez" in p.note]}
        if self.name == "clear-only-after-step":
            clearing = [place for place in where if "zero_grad" in place.code or "clears" in place.note]
            by_hand = not any("zero_grad" in place.code for place in clearing)
            return {"at": [[place.file, place.line] for place in clearing], "by_hand": by_hand}
        return {}


KNOBS: dict[str, Knob] = {
    knob.name: knob
    for knob in (
        Knob(
            "unfreeze", "not frozen", "the named lines no longer set requires_grad to False",
            "share of the weights that are trainable and move", ("stall/params-frozen",),
        ),
        Knob(
            "optimizer-owns-all", "all owned", "parameters that get a gradient and have no owner are given to the optimizer",
            "weights that get a gradient and do not move", ("stall/params-not-in-optimizer",),
        ),
        Knob(
            "clear-only-after-step", "kept for step", "gradients that no step has used yet are not cleared",
            "micro-batches thrown away per window", ("stall/accumulated-gradients-discarded",),
        ),
        Knob(
            "train-mode", "train mode", "modules are in train mode during each forward that records gradients",
            "mode-sensitive modules in eval mode during training", ("mode/eval-during-training",),
        ),
        Knob("seed", "other seed", "every seed is another one", "none: a placebo"),
        Knob("nothing", "nothing", "nothing", "none: a placebo"),
    )
}  # fmt: skip


def knob_for(rule: str) -> Knob | None:
    """The knob that settles a cause, if there is one."""
    return next((knob for knob in KNOBS.values() if rule in knob.settles), None)


def available_knob(name: str) -> bool:
    """Whether a rule's `settled_by` names a knob that exists."""
    return name in KNOBS
