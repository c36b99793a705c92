"""Settles a cause from its trials, by the three conditions of a proof.

The control shows the symptom again; the knob changes the recorded mechanism and the outcome; the placebo changes neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trainsleuth.trials.measure import ERRORS, learning, learns, mechanism_gone
from trainsleuth.trials.trial import Known, Learning, Outcome

Status = Literal["confirmed", "refuted", "workaround", "inconclusive", "not applicable"]
LEAST_GAIN = 0.05  # of the control's loss at its end
SEED_SPREADS = 2.5  # a gain must be this many times what another seed does


@dataclass(frozen=True)
class Verdict:
    """What the trials say of one cause, with the trials it rests on."""

    rule: str
    status: Status
    why: str
    trials: tuple[Known, ...]


def judge(rule: str, control: Known, turned: Known, placebos: Sequence[Known]) -> Verdict:
    """The verdict on the cause that `rule` suspects and `turned` removes."""
    status, why = _judge(rule, control.outcome, turned.outcome, [placebo.outcome for placebo in placebos])
    return Verdict(rule, status, why, (control, turned, *placebos))


def _judge(rule: str, control: Outcome, turned: Outcome, placebos: Sequence[Outcome]) -> tuple[Status, str]:
    if control.kind in ("crash", "hang", "not applicable"):
        return "inconclusive", f"the control did not get as far as training: {control.why}"
    if not turned.acted or turned.kind == "not applicable":
        return "not applicable", turned.why or "the knob found nothing to change"
    if turned.kind in ("crash", "hang"):
        return "not applicable", f"the program does not bear the knob: {turned.why}"
    had, has = control.mechanism[rule], turned.mechanism[rule]
    if not symptom(rule, control):
        return "inconclusive", "the control did not show the suspected mechanism again"
    gone, gained = mechanism_gone(rule, had, has), gains(control, turned, placebos)
    strayed = [placebo for placebo in placebos if mechanism_gone(rule, had, placebo.mechanism[rule])]
    if strayed:
        return "inconclusive", "another seed alone already removes the mechanism"
    if not gone:
        if gained:
            return "workaround", "the loss falls, but the suspected mechanism is as before: something else was changed"
        return "inconclusive", "the knob changed neither the mechanism nor the loss"
    if not placebos or all(placebo.kind in ("crash", "hang", "not applicable") for placebo in placebos):
        return "inconclusive", "there is no placebo to compare with"
    if gained:
        return "confirmed", _gain(control, turned, placebos)
    if control.kind == "stalled" and turned.kind == "stalled":
        return "refuted", "the mechanism is real and was removed, yet the loss stays where it is: this is not why"
    return "inconclusive", f"the mechanism is real and was removed, but {_no_gain(rule, control, turned, placebos)}"


def _gain(control: Outcome, turned: Outcome, placebos: Sequence[Outcome]) -> str:
    before, after = compared(control, turned)
    if control.kind == "nan" or before is None or after is None:
        return "without the mechanism the loss stays finite; with another seed it does not"
    return (
        f"without the mechanism the loss ends lower by {before.last - after.last:.4f}; "
        f"another seed moves that end by {seed_spread(control, placebos):.4f}, and not the mechanism"
    )


def _no_gain(rule: str, control: Outcome, other: Outcome, placebos: Sequence[Outcome] = ()) -> str:
    """What the loss did instead of falling further, in words that claim no more than the numbers."""
    before, after = compared(control, other)
    if before is None or after is None:
        return "there are too few steps to compare"
    numbers = f"{before.last:.4f} as it is, {after.last:.4f} without the mechanism"
    error = (before.last_error**2 + after.last_error**2) ** 0.5
    if gains(control, other):
        return f"another seed moves the end of the loss by {seed_spread(control, placebos):.4f}, too near to the gain ({numbers})"
    if after.last - before.last <= ERRORS * error:
        return f"the loss does not tell the difference within {other.windows} steps ({numbers})"
    if rule == "mode/eval-during-training":
        return f"the training loss ends higher ({numbers}); it is not the same quantity in both modes, so it cannot settle this"
    return f"the loss ends higher, not lower ({numbers})"


def symptom(rule: str, control: Outcome) -> bool:
    """Whether the mechanism is there at all in this outcome."""
    value = control.mechanism.get(rule, 0.0)
    return value < 0.98 if rule == "stall/params-frozen" else value > 0


def gains(control: Outcome, turned: Outcome, placebos: Sequence[Outcome] = ()) -> bool:
    """Whether the loss of `turned` ends clearly lower: beyond its noise, beyond what another seed does, and worth the name."""
    if control.kind == "nan":
        return turned.kind in ("healthy", "stalled") and not any(placebo.kind == "healthy" for placebo in placebos)
    if turned.kind == "nan":
        return False
    before, after = compared(control, turned)
    if before is None or after is None:
        return False
    gain = before.last - after.last
    noise = (before.last_error**2 + after.last_error**2) ** 0.5
    worth = max(LEAST_GAIN * abs(before.last), 0.01 * abs(before.first))
    return learns(after) and gain > max(ERRORS * noise, worth, SEED_SPREADS * seed_spread(control, placebos))


def compared(one: Outcome, other: Outcome) -> tuple[Learning | None, Learning | None]:
    """Both curves measured over the same number of backwards: a trial that was cut short is compared on what it has."""
    if not one.curve or not other.curve:
        return None, None
    shorter = min(one.curve[-1][0], other.curve[-1][0])
    return learning(one.curve, shorter), learning(other.curve, shorter)


def seed_spread(control: Outcome, placebos: Sequence[Outcome]) -> float:
    """By how much another seed changes where the loss ends: the same quantity that a gain is measured on."""
    spreads = [0.0]
    for placebo in placebos:
        own, its = compared(control, placebo)
        if own is not None and its is not None:
            spreads.append(abs(own.last - its.last))
    return max(spreads)


def verified(rule: str, control: Outcome, remedy: Outcome) -> tuple[bool, str]:
    """Whether a patched run shows the cure: the mechanism is gone, and the loss ends clearly lower.

    A mechanism that is gone without a gain is told, and is not called verified: the run did not show that it cures anything.
    """
    if remedy.kind in ("crash", "hang", "nan", "not applicable"):
        return False, f"the patched program: {remedy.why or remedy.kind}"
    if not mechanism_gone(rule, control.mechanism[rule], remedy.mechanism[rule]):
        return False, "the patched program shows the same mechanism"
    if gains(control, remedy):
        return True, "the loss ends lower"
    if control.kind == "stalled" and remedy.kind == "stalled":
        return False, "the mechanism is gone, but the loss still stands"
    return False, f"the mechanism is gone, but {_no_gain(rule, control, remedy)}"
