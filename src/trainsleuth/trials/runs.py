"""The runs that a verdict rests on, and what their losses tell beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from statistics import mean
from typing import Literal

from trainsleuth.rules.wording import loss
from trainsleuth.trials.chance import ERROR_RATE, MOST_PAIRS, all_lower, ends_lower, happens_less, lower_in_pairs
from trainsleuth.trials.measure import ERRORS, learning, learns
from trainsleuth.trials.trial import Learning, Outcome

Symptom = Literal["loss", "nan", "hang", "crash"]
Status = Literal["confirmed", "refuted", "workaround", "inconclusive", "not applicable"]
More = Literal["", "seeds", "repeat", "exchange"]  # what could still decide it: other seeds, the same run once more, inputs exchanged
Judged = tuple[Status, str, More]
LEAST_GAIN = 0.05  # of the control's loss at its end
POWERS = 10.0  # losses that differ by so much among themselves do not scatter about a mean
HARDLY, MANY_TIMES = 0.15, 5.0  # a loss falls by less than this share of itself, and with the knob so many times as far,
WELL = 0.3  # and by so much of itself
LEAST_IN_PAIRS = 0.01  # the same, for a cause whose mechanism was seen to go, where every seed shows it
BROKEN: dict[str, tuple[str, str]] = {  # in a run that has it, in one that has not
    "hang": ("stands still", "goes on"),
    "crash": ("crashes", "runs"),
    "nan": ("meets a loss that is not finite or beyond all measure", "keeps a finite loss"),
}


@dataclass(frozen=True)
class Runs:
    """The outcomes that a verdict rests on: with the same seed as the run, and with others."""

    control: Outcome
    turned: Outcome
    placebos: tuple[Outcome, ...] = ()
    repeats: tuple[Outcome, ...] = ()
    same_again: Outcome | None = None  # the control once more, with its own seed
    exchanged: Outcome | None = None  # each sample with the input of another one
    in_turns: bool = False  # several losses are trained in turns, and may work against each other

    @property
    def controls(self) -> tuple[Outcome, ...]:
        return (self.control, *(one for one in self.placebos if one.kind != "not applicable"))

    @property
    def all_turned(self) -> tuple[Outcome, ...]:
        return (self.turned, *(one for one in self.repeats if one.kind != "not applicable"))

    @property
    def pairs(self) -> tuple[tuple[Outcome, Outcome], ...]:
        """Without and with the knob, each pair with the same seed."""
        return ((self.control, self.turned), *zip(self.placebos, self.repeats))

    @property
    def exhausted(self) -> bool:
        return len(self.repeats) >= MOST_PAIRS - 1 or (self.control.kind in BROKEN and len(self.repeats) >= 2)

    @property
    def other_seeds(self) -> More:
        """That runs with other seeds could decide it, unless all were made."""
        return "" if self.exhausted else "seeds"


def _loss_falls_further(runs: Runs) -> tuple[bool, bool, str]:
    if not gains(runs.control, runs.turned):
        return False, False, ""
    steps = min((curve[-1][0] for one in (*runs.controls, *runs.all_turned) if (curve := one.curve)), default=0)
    control = [end.last for one in runs.controls if (end := learning(one.curve, steps)) is not None]
    turned = [end.last for one in runs.all_turned if (end := learning(one.curve, steps)) is not None]
    before, after = compared(runs.control, runs.turned)
    if before is None or after is None:
        return False, False, ""
    noise = max(before.last_error, after.last_error)
    scale = _scale(control, turned)
    if scale is not None:
        control, turned, noise = [log(end) for end in control], [log(end) for end in turned], noise / scale
    spread = seed_spread(runs.control, runs.placebos)
    words = f"the loss ends lower by {loss(before.last - after.last)}; another seed moves that end by {loss(spread)}"
    sure = len(control) > 1 and (ends_lower(control, turned, noise) or (scale is not None and runs.exhausted and all_lower(control, turned)))
    return True, sure, words


def _scale(control: Sequence[float], turned: Sequence[float]) -> float | None:
    """Where losses without the knob end at different powers of ten, their logarithms are compared; noise is then seen against the largest."""
    ends = [*control, *turned]
    return max(ends) if min(ends, default=0.0) > 0 and max(control) > POWERS * min(control) else None


def _falls_further_in_pairs(runs: Runs, least: float) -> tuple[bool, bool, str] | None:
    """The same by the differences within pairs, once all are there: what the seeds do to both runs of a pair drops out."""
    if not runs.exhausted or not all(without.kind != "nan" and turned.kind == "healthy" for without, turned in runs.pairs):
        return None
    ends = [(before, after) for pair in runs.pairs for before, after in [compared(*pair)] if before is not None and after is not None]
    gained = [before.last - after.last for before, after in ends]
    if not lower_in_pairs(gained, difference_error(runs.control, runs.turned)) or mean(gained) < _worth(*ends[0], least):
        return None
    share = f" ({mean(gained) / abs(ends[0][0].last):.1%})" if ends[0][0].last else ""
    words = f"the loss ends lower by {mean(gained):.4g}{share} than with the same seed and the mechanism: the mean of {len(gained)} pairs"
    return True, True, f"{words} ({min(gained):.4g} to {max(gained):.4g})"


def flips(runs: Runs, symptom: Symptom, least: float = LEAST_GAIN) -> tuple[bool, bool, str]:
    """Whether the knob changes the outcome, whether that cannot be chance, and how to say it."""
    if symptom == "loss":
        ends = _loss_falls_further(runs)
        return ends if ends[1] else _falls_further_in_pairs(runs, least) or ends
    bad, good = BROKEN[symptom]
    control, turned = ([one.kind == symptom for one in side] for side in (runs.controls, runs.all_turned))
    if runs.turned.kind not in ("healthy", "stalled"):
        return False, False, ""
    chance = happens_less(control, turned)
    words = f"it {good} in {turned.count(False)} of {len(turned)} runs, where it {bad} in {control.count(True)} of {len(control)}"
    return True, chance <= ERROR_RATE + 1e-9, words


def difference_error(one: Outcome, other: Outcome) -> float:
    """The error of the difference between the ends of two losses; what both have from the same batches drops out of it."""
    before, after = compared(one, other)
    if before is None or after is None:
        return 0.0
    apart = float((before.last_error**2 + after.last_error**2) ** 0.5)
    own = dict(one.curve)
    between = learning([(to, own[to] - loss) for to, loss in other.curve if to in own])
    return min(apart, between.last_error) if between is not None else apart


def leans(runs: Runs, least: float = LEAST_GAIN / 2) -> bool:
    """Whether the loss ends lower, if not clearly: more runs might show it."""
    before, after = compared(runs.control, runs.turned)
    if before is None or after is None or runs.turned.kind == "nan" or not learns(after):
        return False
    error = difference_error(runs.control, runs.turned)
    return before.last - after.last > max(2 * error, _worth(before, after, least))


def hardly_learns(control: Outcome, turned: Outcome, never_meant: bool = False) -> bool:
    """Whether a loss that falls falls next to nothing, beside what it does with the knob: what looked as if it was meant was not. Of what is
    never meant less is asked."""
    before, after = compared(control, turned)
    if before is None or after is None or turned.kind != "healthy":
        return False
    if never_meant and before.drop < abs(before.first) / 2 and MANY_TIMES * after.last < before.last:
        return True
    return before.drop < HARDLY * abs(before.first) and after.drop > max(MANY_TIMES * before.drop, WELL * abs(after.first))


def begins_to_fall(runs: Runs) -> bool:
    """Whether the loss ends lower than in every run with the mechanism, by more than its noise: too little to count, and yet no refutation."""
    before, after = compared(runs.control, runs.turned)
    if before is None or after is None:
        return False
    others = [end.last for one in runs.placebos if (end := learning(one.curve)) is not None]
    return min(before.last, *others) - after.last > 2 * difference_error(runs.control, runs.turned)


def rises(runs: Runs) -> bool:
    """Whether the loss ends clearly higher: what the knob did then is not nothing."""
    before, after = compared(runs.control, runs.turned)
    if before is None or after is None:
        return False
    return after.last - before.last > max(ERRORS * difference_error(runs.control, runs.turned), _worth(before, after))


def no_gain(rule: str, control: Outcome, other: Outcome, placebos: Sequence[Outcome] = ()) -> str:
    """What the loss did instead of falling further, in words that claim no more than the numbers."""
    before, after = compared(control, other)
    if before is None or after is None:
        return "there are too few steps to compare"
    numbers = f"{loss(before.last)} as it is, {loss(after.last)} with the knob"
    error = (before.last_error**2 + after.last_error**2) ** 0.5
    if gains(control, other):
        return f"another seed moves the end of the loss by {loss(seed_spread(control, placebos))}, too near to the gain ({numbers})"
    if before.last - after.last > ERRORS * error:
        return f"the loss ends lower by too little to count ({numbers})"
    if after.last - before.last <= ERRORS * error:
        return f"the loss does not tell the difference within {other.windows} steps ({numbers})"
    if rule == "mode/eval-during-training":
        return f"the training loss ends higher ({numbers}); it is not the same quantity in both modes, so it cannot settle this"
    return f"the loss ends higher, not lower ({numbers})"


def gains(control: Outcome, turned: Outcome, placebos: Sequence[Outcome] = ()) -> bool:
    """Whether the outcome of `turned` is clearly better: finite, or a loss that ends lower, beyond its noise and worth the name."""
    if control.kind in BROKEN:
        return turned.kind in ("healthy", "stalled") and not any(placebo.kind == "healthy" for placebo in placebos)
    if turned.kind == "nan":
        return False
    before, after = compared(control, turned)
    if before is None or after is None:
        return False
    noise = (before.last_error**2 + after.last_error**2) ** 0.5
    return learns(after) and before.last - after.last > max(ERRORS * noise, _worth(before, after), seed_spread(control, placebos))


def _worth(before: Learning, after: Learning, least: float = LEAST_GAIN) -> float:
    """The least gain that counts. Of the two beginnings the smaller one is the scale: the other run may have exploded there."""
    return max(least * abs(before.last), 0.2 * least * min(abs(before.first), abs(after.first)))


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

