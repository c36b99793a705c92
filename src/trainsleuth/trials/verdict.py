"""Settles a cause from its trials, by the three conditions of a proof.

The control shows the symptom again; the knob changes the recorded mechanism and the outcome; the placebo changes neither. A placebo is a
run with another seed; where chance matters, the knob is run with those seeds as well (`chance.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import mean
from typing import Literal

from trainsleuth.trials import ends
from trainsleuth.trials.chance import ERROR_RATE, MOST_PAIRS, ends_lower, happens_less, lower_in_pairs
from trainsleuth.trials.measure import ERRORS, has, learning, learns, mechanism_gone, mechanism_words, removed
from trainsleuth.trials.trial import Known, Learning, Outcome

Status = Literal["confirmed", "refuted", "workaround", "inconclusive", "not applicable"]
Symptom = Literal["loss", "nan", "hang", "crash"]
PROVED_BY_NO_CHANGE = ("stall/input-ignored",)
PROVED_BY_ANY_CHANGE = ("autograd/silently-modified", "autograd/custom-backward-wrong")  # wrong gradients; what they cost is another matter
PROVED_BY_SCORES = ("mode/train-during-validation",)  # the harm is in what validation says
PROVED_BY_THE_SAME_LINE = ("hang/dataloader-worker",)  # where the workers go and the standstill stays, it is the line that the finding names
NEVER_BELOW_ZERO = ("data/labels-out-of-range",)  # a cross entropy is, once its labels are none: lower is not better then
PROVED_BY_A_REAL_TASK = ("data/labels-constant",)  # one answer is learnt at once; with labels that vary there is something to learn
PROVED_BY_ONE_BATCH = ("stall/inputs-and-targets-misaligned",)  # a model that learns a fixed batch by heart would learn right pairs
SEEN_IN_SCORES = ("data/not-shuffled",)  # a loss over sorted batches is another quantity than one over mixed ones
PROVED_BY_FIRST_GRADIENTS = ("checkpoint/random-inside",)  # later numbers differ for another reason too: a second run draws random numbers of its own
BESIDE_A_REPEAT = (*PROVED_BY_ANY_CHANGE, *PROVED_BY_SCORES, *PROVED_BY_FIRST_GRADIENTS)  # their placebo is the same run once more
ROUNDING = 1e-3  # of a gradient's size: less may come from another order of the same sums
NO_CHANGE = 0.03  # of the noise from step to step
LEAST_GAIN = 0.05  # of the control's loss at its end
LEAST_IN_PAIRS = 0.01  # the same, for a cause whose mechanism was seen to go, where every seed shows it
BROKEN: dict[str, tuple[str, str]] = {  # in a run that has it, in one that has not
    "hang": ("stands still", "goes on"),
    "crash": ("crashes", "runs"),
    "nan": ("meets a loss that is not finite", "keeps a finite loss"),
}


@dataclass(frozen=True)
class Verdict:
    """What the trials say of one cause, with the trials it rests on."""

    rule: str
    status: Status
    why: str
    trials: tuple[Known, ...]
    more: bool = False  # runs with other seeds could still decide it


@dataclass(frozen=True)
class Runs:
    """The outcomes that a verdict rests on: with the same seed as the run, and with others."""

    control: Outcome
    turned: Outcome
    placebos: tuple[Outcome, ...] = ()
    repeats: tuple[Outcome, ...] = ()
    same_again: Outcome | None = None  # the control once more, with its own seed

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


Judged = tuple[Status, str, bool]


def judge(rule: str, control: Known, turned: Known, placebos: Sequence[Known], repeats: Sequence[Known] = (),
          symptom: Symptom = "loss", note: bool = False, rewritten: bool = False, same_again: Known | None = None) -> Verdict:  # fmt: skip
    """The verdict on the cause that `rule` suspects and `turned` removes; a note is no sickness unless the control does not learn.

    `rewritten`: the guilty lines themselves were changed and nothing else. A rule that reads the stacks of a standstill cannot see
    its mechanism in a run that goes on; there the change itself says that it is gone. `same_again`: where chance decides whether a seed
    meets the accident at all, the control once more is the placebo.
    """
    comes_and_goes = symptom == "nan" and control.outcome.kind in ("healthy", "stalled") and control.outcome.not_finite > 0
    seen = _with_passing_nan if comes_and_goes else _as_it_is
    runs = Runs(
        seen(control.outcome), seen(turned.outcome), tuple(seen(p.outcome) for p in placebos), tuple(seen(r.outcome) for r in repeats),
        None if same_again is None else seen(same_again.outcome),
    )  # fmt: skip
    trials = (control, turned, *placebos, *repeats, *([] if same_again is None else [same_again]))
    if note and symptom == "loss" and control.outcome.kind == "healthy":
        why = "the control learns, and the finding is only a note: there is no symptom to explain"
        return Verdict(rule, "inconclusive", why, trials)
    status, why, more = _unfit(runs, symptom) or _judge(rule, runs, symptom_of(symptom, runs.control), rewritten)
    return Verdict(rule, status, why, trials, more)


def _as_it_is(outcome: Outcome) -> Outcome:
    return outcome


def _with_passing_nan(outcome: Outcome) -> Outcome:
    """Where the run gets over its NaN each time, having met one is the symptom."""
    return replace(outcome, kind="nan") if outcome.kind in ("healthy", "stalled") and outcome.not_finite else outcome


def judge_suspicion(name: str, rule: str | None, control: Known, turned: Known, placebos: Sequence[Known],
                    repeats: Sequence[Known] = (), symptom: Symptom = "loss", once: bool = False,
                    removes: Sequence[str] = (), symptoms: Sequence[str] = ()) -> Verdict:  # fmt: skip
    """The verdict on a suspicion: is it this knob? `rule` is the mechanism that the case knows of, if any.

    `once`: the knob is one of several ways out and is not repeated; then it can only be called a workaround. `removes` are the mechanisms
    that the knob is made for, `symptoms` the rules that see the symptom.
    """
    runs = Runs(control.outcome, turned.outcome, tuple(p.outcome for p in placebos), tuple(r.outcome for r in repeats))
    status, why, more = (
        _absent(removes, runs)
        or _unfit(runs, symptom)
        or _symptom_stays(symptoms, runs, *_suspected(rule, runs, symptom_of(symptom, runs.control), once))
    )
    return Verdict(name, status, why, (control, turned, *placebos, *repeats), more)


def _absent(removes: Sequence[str], runs: Runs) -> Judged | None:
    """A mechanism that the program does not have cannot be the reason."""
    if runs.turned.acted or not removes or any(has(rule, runs.control) is not False for rule in removes):
        return None
    numbers = [mechanism_words(rule, runs.control) for rule in removes if rule in runs.control.mechanism]
    if "precision/no-grad-scaler" in removes and runs.control.scaler:
        return "refuted", f"no scaler is missing: {runs.control.scaler}", False
    return "refuted", f"the program has nothing of the kind{': ' + ', '.join(numbers) if numbers else ''}", False


def _symptom_stays(symptoms: Sequence[str], runs: Runs, status: Status, why: str, more: bool) -> Judged:
    """A loss that ends a little lower and is flat all the same has kept its symptom."""
    seen = [rule for rule in symptoms if rule in runs.control.fired and rule in runs.turned.fired]
    if status == "inconclusive" and not more and seen:
        return "refuted", f"{why}; {_name(seen[0])} is as before", False
    return status, why, more


def symptom_of(symptom: Symptom, control: Outcome) -> Symptom:
    return "nan" if symptom == "loss" and control.kind == "nan" else symptom


def _unfit(runs: Runs, symptom: Symptom) -> Judged | None:
    """What keeps these trials from settling anything."""
    control, turned = runs.control, runs.turned
    if symptom != "loss" and control.kind != symptom:
        if control.kind in ("healthy", "stalled") and symptom == "nan":
            return "inconclusive", f"the control does not show the symptom again in {control.windows} steps, or gets over it", False
        if control.kind in ("healthy", "stalled"):
            return "inconclusive", f"the control does not show the symptom again: it {BROKEN[symptom][1]} for {control.windows} steps", False
        return "inconclusive", f"the control ended in another way than the run: {control.why or control.kind}", False
    if symptom == "loss" and control.kind in ("crash", "hang", "not applicable"):
        return "inconclusive", f"the control did not get as far as training: {control.why}", False
    if turned.kind == "not applicable" or not turned.acted:
        why = turned.why if turned.kind == "not applicable" else ""
        return "not applicable", why or "the knob found nothing to change", False
    if turned.kind in ("crash", "hang") and not _same_end(control, turned):
        return "not applicable", f"the program does not bear the knob: {turned.why}", False
    return None


def _same_end(control: Outcome, turned: Outcome) -> bool:
    return control.kind == turned.kind and control.crash_kind == turned.crash_kind


def _judge(rule: str, runs: Runs, symptom: Symptom, rewritten: bool = False) -> Judged:
    if has(rule, runs.control) is not True:
        return "inconclusive", "the control did not show the suspected mechanism again", False
    if rule in PROVED_BY_NO_CHANGE:
        return _changes_nothing(runs)
    unseen = rewritten and symptom == "hang" and has(rule, runs.turned) is None
    gone = unseen or removed(rule, runs.control, runs.turned)
    if any(strayed(rule, runs.control, placebo) for placebo in runs.placebos):
        if gone and symptom in ("nan", "crash") and runs.turned.kind in ("healthy", "stalled"):
            return _beside_the_same_again(runs, symptom)
        return "inconclusive", "another seed alone already removes the mechanism", False
    if rule in PROVED_BY_ANY_CHANGE and gone:
        return _changes_the_numbers(runs)
    if rule in PROVED_BY_FIRST_GRADIENTS and gone and symptom == "loss":
        return _changes_the_first_gradients(runs)
    if rule in PROVED_BY_SCORES and gone:
        return _changes_the_scores(runs)
    flipped, sure, words = _flips(runs, symptom, LEAST_IN_PAIRS if gone else LEAST_GAIN)
    if not gone:
        if flipped:
            return "workaround", f"{words}, but the suspected mechanism is as before: something else was changed", False
        return "inconclusive", "the knob changed neither the mechanism nor the outcome", False
    if len(runs.controls) < 2:
        return "inconclusive", "there is no placebo to compare with", False
    if flipped and sure:
        return "confirmed", f"without the mechanism {words}", False
    if flipped and not (rule in SEEN_IN_SCORES and runs.exhausted):
        return "inconclusive", f"without the mechanism {words}; too few runs to rule out chance", not runs.exhausted
    if rule in SEEN_IN_SCORES:
        return _scores_better(runs)
    if rule in PROVED_BY_THE_SAME_LINE and (line := _stands_at_the_same_line(rule, runs)):
        return "confirmed", f"without the workers the program itself stands still at {line}: that line is the cause, not the workers", False
    if rule in NEVER_BELOW_ZERO and (words := _rises_above_zero(runs)):
        return "confirmed", f"without the mechanism {words}", False
    if rule in PROVED_BY_A_REAL_TASK and all(one.kind == "healthy" for one in runs.all_turned) and (end := runs.turned.learning):
        return "confirmed", f"without the mechanism there is something to learn, and the loss falls from {end.first:.4g} to {end.last:.4g}", False
    if symptom != "loss":
        return "refuted", f"the mechanism is real and was removed, yet the program {BROKEN[symptom][0]} as before: this is not why", False
    if rule in PROVED_BY_ONE_BATCH and runs.turned.kind == "stalled":
        return "refuted", "not even one batch, whose pairs stay the same, is learnt by heart: this is not why", False
    if runs.control.kind == "stalled" and runs.turned.kind == "stalled" and not _begins_to_fall(runs) and not _rises(runs):
        return "refuted", "the mechanism is real and was removed, yet the loss stays where it is: this is not why", False
    why = _no_gain(rule, runs.control, runs.turned, runs.placebos)
    more = _leans(runs, LEAST_IN_PAIRS) and not runs.exhausted
    return "inconclusive", f"the mechanism is real and was removed, but {why}", more


def _stands_at_the_same_line(rule: str, runs: Runs) -> str:
    """The line of the finding, if the program stands still there with the knob too."""
    line = runs.control.fired.get(rule, "")
    stands = runs.turned.kind == "hang" and any(at == line for name, at in runs.turned.fired.items() if name.startswith("hang/"))
    return line if stands else ""


def _rises_above_zero(runs: Runs) -> str:
    """A loss that falls below zero in every run as it is, and with the knob in none."""
    ends = [[end.last for one in side if (end := learning(one.curve)) is not None] for side in (runs.controls, runs.all_turned)]
    without, turned = ends
    if len(without) < 2 or not turned or max(without) >= 0 or min(turned) < 0:
        return ""
    return f"the loss stays above zero, where it belongs ({turned[0]:.4g}), and as it is it falls to {without[0]:.4g}"


def _changes_nothing(runs: Runs) -> Judged:
    """For a suspicion that something does not matter: it is exchanged, and the losses must stay the same, far within their noise."""
    own = {to: mean for to, mean in runs.control.curve}
    apart = [abs(own[to] - mean) for to, mean in runs.turned.curve if to in own]
    before = learning(runs.control.curve)
    if len(apart) < 10 or before is None:
        return "inconclusive", "there are too few steps to compare", False
    far = sum(apart) / len(apart)
    noise = before.last_error * max(2, min(40, len(runs.control.curve) // 5)) ** 0.5
    size = max(abs(before.first), abs(before.last))
    if far <= max(NO_CHANGE * noise, 1e-6 * size):
        return "confirmed", f"exchanging it changes the loss by {far:.2g} a step, which has a noise of {noise:.2g}", False
    return "refuted", f"exchanging it changes the loss by {far:.2g} a step, which has a noise of {noise:.2g}: it does matter", False


def _changes_the_numbers(runs: Runs) -> Judged:
    """For gradients that are wrong: without the mechanism the losses differ, while a run that is only repeated gives the same."""
    own = {to: mean for to, mean in runs.control.curve}
    apart = [(to, mean) for to, mean in runs.turned.curve if to in own and mean != own[to]]
    shared = sum(1 for to, _ in runs.turned.curve if to in own)
    if not runs.placebos or any(placebo.curve[:shared] != runs.control.curve[:shared] for placebo in runs.placebos):
        return "inconclusive", "the program does not repeat its own numbers, so a change of them shows nothing", False
    if not apart:
        return "refuted", f"all {shared} losses are the same to the last digit, with the mechanism and without: it does no harm here", False
    before, after = compared(runs.control, runs.turned)
    end = "" if before is None or after is None else f" ({before.last:.4g} as it is, {after.last:.4g} without it at the end)"
    return "confirmed", (
        f"without the mechanism {len(apart)} of {shared} losses are others{end}, from backward {apart[0][0]} on; a run that is only "
        "repeated gives the same numbers to the last digit"
    ), False  # fmt: skip


def _changes_the_first_gradients(runs: Runs) -> Judged:
    """For gradients that backward computes from other numbers than forward had: the first loss is the same, the first gradients are not."""
    own, without = runs.control.gradients, runs.turned.gradients
    shared = [name for name in own if name in without]
    same_loss = runs.control.curve[:1] == runs.turned.curve[:1] and bool(runs.control.curve)
    if not shared or not same_loss:
        return "inconclusive", "the first losses differ with the knob and without, so their gradients cannot be compared", False
    if not runs.placebos or any(placebo.gradients != own for placebo in runs.placebos):
        return "inconclusive", "the program does not repeat its own gradients, so a change of them shows nothing", False
    apart = [name for name in shared if abs(own[name] - without[name]) > ROUNDING * max(abs(own[name]), abs(without[name]))]
    if not apart:
        return "refuted", f"the gradients of all {len(shared)} parameters are the same, with the mechanism and without: it does no harm here", False
    worst = max(apart, key=lambda name: abs(own[name] - without[name]) / max(abs(own[name]), abs(without[name])))
    return "confirmed", (
        f"the first loss is the same to the last digit, and without the mechanism {len(apart)} of {len(shared)} parameters get another gradient "
        f"from it ({worst}: {without[worst]:.4g} instead of {own[worst]:.4g}); a run that is only repeated gives the same as before"
    ), False  # fmt: skip


def _beside_the_same_again(runs: Runs, symptom: Symptom) -> Judged:
    """An accident that not every seed meets: the same run breaks again at the same place, and with the knob it gets past that place,
    having computed the same numbers up to there."""
    bad, good = BROKEN[symptom]
    again, own, without = runs.same_again, runs.control.curve, dict(runs.turned.curve)
    if again is None:
        return "inconclusive", "another seed alone already removes the mechanism", True
    if again.kind != runs.control.kind or again.curve != own:
        return "inconclusive", "another seed alone already removes the mechanism, and the program does not repeat its own numbers", False
    before = own[: next((at for at, (one, other) in enumerate(pairwise(own), 1) if other[0] - one[0] > 1), len(own))]
    same = sum(1 for to, loss in before if without.get(to) == loss)
    if same < len(before) - 1 or not before:  # the last one may already be of the step that broke
        return "inconclusive", "another seed alone already removes the mechanism, and the knob changes more than the step that breaks", False
    return "confirmed", (
        f"without the mechanism it {good}, where the same run {bad} again at the same step; the {same} losses before are the same to the "
        "last digit. Another seed need not meet the accident"
    ), False  # fmt: skip


def _changes_the_scores(runs: Runs) -> Judged:
    """For a validation that says something else than it should: without the mechanism its scores differ, and a repeat gives the same."""
    own, without = runs.control.scores, runs.turned.scores
    shared = [name for name in own if name in without]
    if not shared:
        return "inconclusive", "the mechanism is real and was removed, but the trials log and print no score of a validation to compare", False
    if not runs.placebos or any(placebo.scores.get(name) != own[name] for placebo in runs.placebos for name in shared):
        return "inconclusive", "the program does not repeat its own scores, so a change of them shows nothing", False
    other = [name for name in shared if without[name] != own[name]]
    if not other:
        return "refuted", f"all {len(shared)} scores are the same, with the mechanism and without: it does no harm here", False
    said = ", ".join(f"{name} {without[name]:.4g} instead of {own[name]:.4g}" for name in other[:3])
    return "confirmed", f"without the mechanism validation says {said}; a run that is only repeated gives the same as before", False


def _scores_better(runs: Runs) -> Judged:
    """By the program's own score: every run without the mechanism better than every run with it, three against three."""
    measure = ends.choose([*runs.controls, *runs.all_turned])
    if measure is None or measure.name == ends.TRAINING_LOSS:
        return "inconclusive", "the mechanism is real and was removed; its harm is not in the training loss, and no score is logged or printed", False
    sides = ([ends.value(one, measure) for one in side] for side in (runs.controls, runs.all_turned))
    control, turned = ([one for one in side if one is not None] for side in sides)
    with_it, without = (", ".join(f"{one:.4g}" for one in side) for side in (control, turned))
    words = f"{measure.name} ends at {without}, where it ends at {with_it} with it"
    apart = min((measure.gain(before, after) for before in control for after in turned), default=0.0) > 0
    if apart and len(control) >= 3 and len(turned) >= 3:
        return "confirmed", f"without the mechanism {words}", False
    return "inconclusive", f"the mechanism is real and was removed; {words}", apart and not runs.exhausted


def _suspected(rule: str | None, runs: Runs, symptom: Symptom, once: bool = False) -> Judged:
    flipped, sure, words = _flips(runs, symptom)
    if flipped and once:
        gone = rule is not None and removed(rule, runs.control, runs.turned)
        left = "" if rule is None else f"; {_name(rule)} is {'gone with it' if gone else 'as before'}"
        return "workaround", f"with the knob {words}{left}", False
    if flipped and not sure:
        return "inconclusive", f"with the knob {words}; too few runs to rule out chance", not runs.exhausted
    if flipped and rule is not None and removed(rule, runs.control, runs.turned):
        return "confirmed", f"with the knob {words}, and {_name(rule)} is gone", False
    if flipped:
        left = f"{_name(rule)} is as before" if rule is not None else "what makes the symptom is not known by that"
        return "workaround", f"with the knob {words}; {left}", False
    if symptom == "loss" and _leans(runs):
        return "inconclusive", _no_gain("", runs.control, runs.turned, runs.placebos), not runs.exhausted
    if symptom != "loss":
        return "refuted", f"with the knob the program {BROKEN[symptom][0]} as before", False
    if runs.control.curve == runs.turned.curve:
        return "refuted", f"all {len(runs.control.curve)} losses are the same to the last digit, with the knob and without", False
    return "refuted", f"with the knob {_no_gain('', runs.control, runs.turned, runs.placebos)}", False


def _name(rule: str) -> str:
    return rule.partition("/")[2].replace("-", " ")


def strayed(rule: str, control: Outcome, placebo: Outcome) -> bool:
    """Whether another seed alone makes the mechanism go away."""
    if placebo.kind == "not applicable":
        return False
    if rule in control.mechanism and rule in placebo.mechanism:
        return mechanism_gone(rule, control.mechanism[rule], placebo.mechanism[rule])
    return has(rule, placebo) is False


def _flips(runs: Runs, symptom: Symptom, least: float = LEAST_GAIN) -> tuple[bool, bool, str]:
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
    words = f"the loss ends lower by {before.last - after.last:.4f}; another seed moves that end by {seed_spread(runs.control, runs.placebos):.4f}"
    return True, len(control) > 1 and ends_lower(control, turned, noise), words


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


def difference_error(one: Outcome, other: Outcome) -> float:
    """The error of the difference between the ends of two losses; what both have from the same batches drops out of it."""
    before, after = compared(one, other)
    if before is None or after is None:
        return 0.0
    apart = float((before.last_error**2 + after.last_error**2) ** 0.5)
    own = dict(one.curve)
    between = learning([(to, own[to] - loss) for to, loss in other.curve if to in own])
    return min(apart, between.last_error) if between is not None else apart


def _leans(runs: Runs, least: float = LEAST_GAIN / 2) -> bool:
    """Whether the loss ends lower, if not clearly: more runs might show it."""
    before, after = compared(runs.control, runs.turned)
    if before is None or after is None or runs.turned.kind == "nan" or not learns(after):
        return False
    error = difference_error(runs.control, runs.turned)
    return before.last - after.last > max(2 * error, _worth(before, after, least))


def _begins_to_fall(runs: Runs) -> bool:
    """Whether the loss ends lower than in every run with the mechanism, by more than its noise: too little to count, and yet no refutation."""
    before, after = compared(runs.control, runs.turned)
    if before is None or after is None:
        return False
    others = [end.last for one in runs.placebos if (end := learning(one.curve)) is not None]
    return min(before.last, *others) - after.last > 2 * difference_error(runs.control, runs.turned)


def _rises(runs: Runs) -> bool:
    """Whether the loss ends clearly higher: what the knob did then is not nothing."""
    before, after = compared(runs.control, runs.turned)
    if before is None or after is None:
        return False
    return after.last - before.last > max(ERRORS * difference_error(runs.control, runs.turned), _worth(before, after))


def _no_gain(rule: str, control: Outcome, other: Outcome, placebos: Sequence[Outcome] = ()) -> str:
    """What the loss did instead of falling further, in words that claim no more than the numbers."""
    before, after = compared(control, other)
    if before is None or after is None:
        return "there are too few steps to compare"
    digits = ".4f" if abs(before.last) >= 0.01 else ".4g"
    numbers = f"{before.last:{digits}} as it is, {after.last:{digits}} with the knob"
    error = (before.last_error**2 + after.last_error**2) ** 0.5
    if gains(control, other):
        return f"another seed moves the end of the loss by {seed_spread(control, placebos):.4f}, too near to the gain ({numbers})"
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
