"""Settles a cause from its trials, by the three conditions of a proof.

The control shows the symptom again; the knob changes the recorded mechanism and the outcome; the placebo changes neither. A placebo is a
run with another seed; where chance matters, the knob is run with those seeds as well (`chance.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from trainsleuth.rules.catalogue import rule_named
from trainsleuth.trials import other_proofs
from trainsleuth.trials.measure import has, mechanism_gone, mechanism_words, removed
from trainsleuth.trials.runs import (
    BROKEN,
    LEAST_GAIN,
    LEAST_IN_PAIRS,
    Judged,
    More,
    Runs,
    Status,
    Symptom,
    begins_to_fall,
    flips,
    hardly_learns,
    leans,
    no_gain,
    rises,
)
from trainsleuth.trials.trial import Known, Outcome

PROVED_BY_NO_CHANGE = ("stall/input-ignored",)
PROVED_BY_ANY_CHANGE = ("autograd/silently-modified", "autograd/custom-backward-wrong")  # wrong gradients; what they cost is another matter
PROVED_BY_SCORES = ("mode/train-during-validation", "mode/statistics-as-built", "data/end-never-learnt")  # the harm is in what validation says
PROVED_BY_THE_SAME_LINE = ("hang/dataloader-worker",)  # where the workers go and the standstill stays, it is the line that the finding names
NEVER_BELOW_ZERO = ("data/labels-out-of-range", "stall/probabilities-not-logs", "stall/metric-does-not-follow-loss")  # lower is not better then
PROVED_BY_A_REAL_TASK = ("data/labels-constant",)  # one answer is learnt at once; with labels that vary there is something to learn
GONE_WITH_ITS_KNOB = ("hang/python-lock", "hang/pipe-nobody-reads")  # whatever the stacks of a run that goes on do not show
NEVER_MEANT = ("stall/wrong-softmax-axis",)  # a note because it may do no harm, not because somebody may want it
CHANGED_NOTHING = "the knob changed neither the mechanism nor the outcome"
BEYOND_MEASURE = 1e4  # times the loss at the beginning
SEEN_IN_SCORES = ("data/not-shuffled",)  # a loss over sorted batches is another quantity than one over mixed ones
PROVED_BY_FIRST_GRADIENTS = ("checkpoint/random-inside",)  # later numbers differ for another reason too: a second run draws random numbers of its own
PROVED_BY_THE_LOG = ("logging/step-not-increasing", "logging/points-dropped", "logging/two-writers", "logging/nan-hidden")
BESIDE_A_REPEAT = (*PROVED_BY_ANY_CHANGE, *PROVED_BY_SCORES, *PROVED_BY_FIRST_GRADIENTS, *PROVED_BY_THE_LOG)  # the placebo repeats


@dataclass(frozen=True)
class Verdict:
    """What the trials say of one cause, with the trials it rests on."""

    rule: str
    status: Status
    why: str
    trials: tuple[Known, ...]
    more: More = ""


def judge(rule: str, control: Known, turned: Known, placebos: Sequence[Known], repeats: Sequence[Known] = (),
          symptom: Symptom = "loss", note: bool = False, rewritten: bool = False, same_again: Known | None = None,
          by_heart: bool = False, exchanged: Known | None = None, in_turns: bool = False) -> Verdict:  # fmt: skip
    """The verdict on the cause that `rule` suspects and `turned` removes; a note is no sickness unless the control does not learn.

    `rewritten`: the guilty lines themselves were changed and nothing else. A rule that reads the stacks of a standstill cannot see
    its mechanism in a run that goes on; there the change itself says that it is gone. `same_again`: where chance decides whether a seed
    meets the accident at all, the control once more is the placebo. `by_heart`: the knob gives one batch again and again, which tells only that
    the rest of the program can learn; `exchanged`, each sample with the input of another one, tells whether its pairs matter.
    """
    seen = _as_the_symptom_has_it(symptom, control.outcome)
    runs = Runs(
        seen(control.outcome), seen(turned.outcome), tuple(seen(p.outcome) for p in placebos), tuple(seen(r.outcome) for r in repeats),
        None if same_again is None else seen(same_again.outcome), None if exchanged is None else exchanged.outcome, in_turns,
    )  # fmt: skip
    trials = (control, turned, *placebos, *repeats, *(one for one in (same_again, exchanged) if one is not None))
    sick = hardly_learns(control.outcome, turned.outcome, rule in NEVER_MEANT)
    if note and symptom == "loss" and control.outcome.kind == "healthy" and not sick:
        why = "the control learns, and the finding is only a note: there is no symptom to explain"
        return Verdict(rule, "inconclusive", why, trials)
    unfit = _unfit(runs, symptom)
    status, why, more = (
        unfit or _by_heart(rule, runs) if by_heart else unfit or _judge(rule, runs, symptom_of(symptom, runs.control), rewritten)
    )
    return Verdict(rule, status, why, trials, more)


def _as_the_symptom_has_it(symptom: Symptom, control: Outcome) -> Callable[[Outcome], Outcome]:
    """How outcomes are to be read, given what broke in the control."""
    if symptom == "nan" and control.kind == "crash":
        return partial(_raised_by_numbers, control.crash_kind)
    if symptom == "nan" and control.kind in ("healthy", "stalled") and control.not_finite > 0:
        return _with_passing_nan
    return _or_beyond_measure if "nan" in (symptom, control.kind) else _as_it_is


def _as_it_is(outcome: Outcome) -> Outcome:
    return outcome


def _or_beyond_measure(outcome: Outcome) -> Outcome:
    """Where other runs end at NaN, one whose loss has grown by so much is only a few steps behind them."""
    grown = outcome.learning is not None and outcome.learning.last > BEYOND_MEASURE * max(abs(outcome.learning.first), 1e-6)
    return replace(outcome, kind="nan") if outcome.kind in ("healthy", "stalled") and grown else outcome


def _raised_by_numbers(kind: str, outcome: Outcome) -> Outcome:
    """Where the run ends by an exception that bad numbers raise, the same exception is the symptom."""
    return replace(outcome, kind="nan") if outcome.kind == "crash" and outcome.crash_kind == kind else outcome


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
    why = "" if runs.turned.acted else nothing_to_remove(removes, runs.control)
    return ("refuted", why, "") if why else None


def nothing_to_remove(removes: Sequence[str], control: Outcome) -> str:
    """What the control shows where it has none of these mechanisms, so that no trial without them is needed; else nothing."""
    if not removes or any(has(rule, control) is not False for rule in removes):
        return ""
    if "precision/no-grad-scaler" in removes and control.scaler:
        return f"no scaler is missing: {control.scaler}"
    numbers = [mechanism_words(rule, control) for rule in removes if rule in control.mechanism]
    return f"the program has nothing of the kind{': ' + ', '.join(numbers) if numbers else ''}"


def _symptom_stays(symptoms: Sequence[str], runs: Runs, status: Status, why: str, more: More) -> Judged:
    """A loss that ends a little lower and is flat all the same has kept its symptom."""
    seen = [rule for rule in symptoms if rule in runs.control.fired and rule in runs.turned.fired]
    if status == "inconclusive" and not more and seen:
        return "refuted", f"{why}; {_name(seen[0])} is as before", ""
    return status, why, more


def symptom_of(symptom: Symptom, control: Outcome) -> Symptom:
    return "nan" if symptom == "loss" and control.kind == "nan" else symptom


def _unfit(runs: Runs, symptom: Symptom) -> Judged | None:
    """What keeps these trials from settling anything."""
    control, turned = runs.control, runs.turned
    if symptom != "loss" and control.kind != symptom:
        if control.kind in ("healthy", "stalled") and symptom == "nan":
            return "inconclusive", f"the control does not show the symptom again in {control.windows} steps, or gets over it", ""
        if control.kind in ("healthy", "stalled"):
            return "inconclusive", f"the control does not show the symptom again: it {BROKEN[symptom][1]} for {control.windows} steps", ""
        return "inconclusive", f"the control ended in another way than the run: {control.why or control.kind}", ""
    if symptom == "loss" and control.kind in ("crash", "hang", "not applicable"):
        return "inconclusive", f"the control did not get as far as training: {control.why}", ""
    if turned.kind == "not applicable" or not turned.acted:
        why = turned.why if turned.kind == "not applicable" else ""
        return "not applicable", why or "the knob found nothing to change", ""
    if turned.kind in ("crash", "hang") and not _same_end(control, turned):
        return "not applicable", f"the program does not bear the knob: {turned.why}", ""
    return None


def _same_end(control: Outcome, turned: Outcome) -> bool:
    return control.kind == turned.kind and control.crash_kind == turned.crash_kind


def _judge(rule: str, runs: Runs, symptom: Symptom, rewritten: bool = False) -> Judged:
    alone = rewritten and _shows_the_symptom_alone(rule, runs.control, symptom)
    if has(rule, runs.control) is not True and not alone:
        return "inconclusive", "the control did not show the suspected mechanism again", ""
    if rule in PROVED_BY_NO_CHANGE:
        return other_proofs.changes_nothing(runs)
    unseen = (rewritten or rule in GONE_WITH_ITS_KNOB) and symptom == "hang" and has(rule, runs.turned) is None
    unseen = unseen or (alone and has(rule, runs.turned) is not True)
    gone = unseen or removed(rule, runs.control, runs.turned)
    if any(strayed(rule, runs.control, placebo) and not (alone and placebo.kind == "stalled") for placebo in runs.placebos):
        if gone and symptom != "loss" and runs.turned.kind in ("healthy", "stalled"):
            return other_proofs.beside_the_same_again(runs, symptom)
        return "inconclusive", "another seed alone already removes the mechanism", ""
    if rule in PROVED_BY_ANY_CHANGE and gone:
        return other_proofs.changes_the_numbers(runs, runs.placebos)
    if rule in PROVED_BY_FIRST_GRADIENTS and gone and symptom == "loss":
        return other_proofs.changes_the_first_gradients(runs)
    if rule in PROVED_BY_SCORES and gone:
        return other_proofs.changes_the_scores(runs)
    if gone and (rule in PROVED_BY_THE_LOG or (rule == "stall/metric-does-not-follow-loss" and rewritten)):
        return other_proofs.leaves_the_training_alone(runs)
    flipped, sure, words = flips(runs, symptom, LEAST_IN_PAIRS if gone else LEAST_GAIN)
    if not gone:
        if flipped:
            return "workaround", f"{words}, but the suspected mechanism is as before: something else was changed", ""
        return "inconclusive", CHANGED_NOTHING, ""
    if len(runs.controls) < 2:
        return "inconclusive", "there is no placebo to compare with", ""
    if flipped and sure:
        return "confirmed", f"without the mechanism {words}", ""
    if flipped and not (rule in SEEN_IN_SCORES and runs.exhausted):
        return _or_by_its_nature(rule, runs, f"without the mechanism {words}; too few runs to rule out chance", runs.other_seeds)
    if rule in SEEN_IN_SCORES:
        return other_proofs.scores_better(runs)
    if rule in PROVED_BY_THE_SAME_LINE and (line := other_proofs.stands_at_the_same_line(rule, runs)):
        return "confirmed", f"without the workers the program itself stands still at {line}: that line is the cause, not the workers", ""
    if rule in NEVER_BELOW_ZERO and (words := other_proofs.rises_above_zero(runs)):
        return "confirmed", f"without the mechanism {words}", ""
    if rule in PROVED_BY_A_REAL_TASK and all(one.kind == "healthy" for one in runs.all_turned) and (end := runs.turned.learning):
        return "confirmed", f"without the mechanism there is something to learn, and the loss falls from {end.first:.4g} to {end.last:.4g}", ""
    if symptom != "loss":
        return "refuted", f"the mechanism is real and was removed, yet the program {BROKEN[symptom][0]} as before: this is not why", ""
    if runs.control.kind == "stalled" and runs.turned.kind == "stalled" and not begins_to_fall(runs) and not rises(runs):
        return "refuted", "the mechanism is real and was removed, yet the loss stays where it is: this is not why", ""
    why = no_gain(rule, runs.control, runs.turned, runs.placebos)
    return _or_by_its_nature(rule, runs, f"the mechanism is real and was removed, but {why}", runs.other_seeds if leans(runs, LEAST_IN_PAIRS) else "")


def _shows_the_symptom_alone(rule: str, control: Outcome, symptom: Symptom) -> bool:
    """Whether the rule lacks the facts in so short a run, which stands still like the one that it judged. A rule of last resort sees hardly more
    than that symptom, so that its limits may lie between two runs that are alike."""
    named = rule_named(rule)
    return symptom == "loss" and control.kind == "stalled" and (rule in control.missing or (named is not None and named.last_resort))


def _by_heart(rule: str, runs: Runs) -> Judged:
    """Wrong pairs: one batch is learnt by heart, so that all but the data is sound, and the data teach no more than with inputs exchanged."""
    if has(rule, runs.control) is not True and not _shows_the_symptom_alone(rule, runs.control, "loss"):
        return "inconclusive", "the control did not show the suspected mechanism again", ""
    if runs.turned.kind == "stalled":
        return "refuted", "not even one batch, whose pairs stay the same, is learnt by heart: this is not why", ""
    flipped, sure, words = flips(runs, "loss")
    if not flipped or not sure:
        more = runs.other_seeds if flipped else ""
        return "inconclusive", "one batch is not learnt so much better that model, loss and optimizer could be called sound", more
    return other_proofs.pairs_do_not_matter(runs, f"one batch is learnt by heart, so model, loss and optimizer can learn ({words})")


def _or_by_its_nature(rule: str, runs: Runs, why: str, more: More) -> Judged:
    """Open by the loss; other seeds first, if they may still tell, then what the fault is by its nature."""
    still: Judged = ("inconclusive", why, more)
    return still if more else other_proofs.wrong_whatever_it_costs(rule, runs, still)


def _suspected(rule: str | None, runs: Runs, symptom: Symptom, once: bool = False) -> Judged:
    flipped, sure, words = flips(runs, symptom)
    if flipped and once:
        gone = rule is not None and removed(rule, runs.control, runs.turned)
        left = "" if rule is None else f"; {_name(rule)} is {'gone with it' if gone else 'as before'}"
        return "workaround", f"with the knob {words}{left}", ""
    if flipped and not sure:
        return "inconclusive", f"with the knob {words}; too few runs to rule out chance", runs.other_seeds
    if flipped and rule is not None and removed(rule, runs.control, runs.turned):
        return "confirmed", f"with the knob {words}, and {_name(rule)} is gone", ""
    if flipped:
        left = f"{_name(rule)} is as before" if rule is not None else "what makes the symptom is not known by that"
        return "workaround", f"with the knob {words}; {left}", ""
    if symptom == "loss" and leans(runs):
        return "inconclusive", no_gain("", runs.control, runs.turned, runs.placebos), runs.other_seeds
    if symptom != "loss":
        return "refuted", f"with the knob the program {BROKEN[symptom][0]} as before", ""
    if runs.control.curve == runs.turned.curve:
        return "refuted", f"all {len(runs.control.curve)} losses are the same to the last digit, with the knob and without", ""
    return "refuted", f"with the knob {no_gain('', runs.control, runs.turned, runs.placebos)}", ""


def _name(rule: str) -> str:
    return rule.partition("/")[2].replace("-", " ")


def strayed(rule: str, control: Outcome, placebo: Outcome) -> bool:
    """Whether another seed alone makes the mechanism go away."""
    if placebo.kind == "not applicable":
        return False
    if rule in control.mechanism and rule in placebo.mechanism:
        return mechanism_gone(rule, control.mechanism[rule], placebo.mechanism[rule])
    return has(rule, placebo) is False


