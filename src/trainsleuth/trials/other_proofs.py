"""Proofs by another outcome than a loss that ends lower: the losses themselves, the first gradients, the scores, the line of a standstill."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from trainsleuth.trials import ends
from trainsleuth.trials.measure import learning, removed
from trainsleuth.trials.runs import BROKEN, Judged, Runs, Symptom, compared, rises
from trainsleuth.trials.trial import Outcome

MAKES_OTHER_NUMBERS = (
    "precision/clip-before-unscale", "precision/step-without-unscale", "precision/gradient-underflow", "precision/no-grad-scaler",
    "precision/autocast-around-backward", "mode/eval-during-training", "schedule/step-order", "schedule/reset-on-resume",
)  # fmt: skip
IS_ITSELF_THE_HARM = {
    "precision/norm-weights-frozen": "the weights that stood still move",
    "stall/no-gradient": "the layers that stood still get gradients and learn",
    "stall/inputs-and-targets-misaligned": "each target belongs to its input, where it did not before",
    "ranks/same-data-on-every-rank": "each rank works on samples of its own, where their work was done twice before",
    "stall/metric-does-not-follow-loss": "each sample has a target that the loss can teach",
    "data/workers-share-random-state": "each batch comes once, where every worker gave it before",
    "checkpoint/restores-nothing": "the weights that were kept come back",
    "data/samples-rewritten": "each sample stays as it was stored, where every reading changed it",
    "ranks/diverged-weights": "the ranks hold the same weights",
}
ROUNDING = 1e-3  # of a gradient's size: less may come from another order of the same sums
NO_CHANGE = 0.03  # of the noise from step to step


def stands_at_the_same_line(rule: str, runs: Runs) -> str:
    """The line of the finding, if the program stands still there with the knob too; what goes round in a loop is seen at any of its lines."""
    line = runs.control.fired.get(rule, "")
    there = [at for name, at in runs.turned.fired.items() if name.startswith("hang/") and at.rpartition(":")[0] == line.rpartition(":")[0]]
    if runs.turned.kind != "hang" or not line or not there:
        return ""
    return line if line in there else there[0]


def rises_above_zero(runs: Runs) -> str:
    """A loss that falls below zero in every run as it is, and with the knob in none."""
    ends = [[end.last for one in side if (end := learning(one.curve)) is not None] for side in (runs.controls, runs.all_turned)]
    without, turned = ends
    if len(without) < 2 or not turned or max(without) >= 0 or min(turned) < 0:
        return ""
    return f"the loss stays above zero, where it belongs ({turned[0]:.4g}), and as it is it falls to {without[0]:.4g}"


def changes_nothing(runs: Runs) -> Judged:
    """For a suspicion that something does not matter: it is exchanged, and the losses must stay the same, far within their noise."""
    own = {to: mean for to, mean in runs.control.curve}
    apart = [abs(own[to] - mean) for to, mean in runs.turned.curve if to in own]
    before = learning(runs.control.curve)
    if len(apart) < 10 or before is None:
        return "inconclusive", "there are too few steps to compare", ""
    far = sum(apart) / len(apart)
    noise = before.last_error * max(2, min(40, len(runs.control.curve) // 5)) ** 0.5
    size = max(abs(before.first), abs(before.last))
    if far <= max(NO_CHANGE * noise, 1e-6 * size):
        return "confirmed", f"exchanging it changes the loss by {far:.2g} a step, which has a noise of {noise:.2g}", ""
    return "refuted", f"exchanging it changes the loss by {far:.2g} a step, which has a noise of {noise:.2g}: it does matter", ""


def pairs_do_not_matter(runs: Runs, can_learn: str) -> Judged:
    """For targets that do not belong to their inputs: with the input of another sample the loss ends no higher than as it is."""
    if runs.exchanged is None:
        return "inconclusive", can_learn, "exchange"
    before, after = compared(runs.control, runs.exchanged)
    if runs.exchanged.kind not in ("healthy", "stalled") or before is None or after is None:
        return "inconclusive", f"{can_learn}; whether its pairs matter could not be tried: {runs.exchanged.why or 'too few steps'}", ""
    numbers = f"loss {before.last:.4g} as it is, {after.last:.4g} with the inputs exchanged"
    if rises(Runs(runs.control, runs.exchanged)):
        return "refuted", f"with the input of another sample the loss ends higher ({numbers}): the pairs do matter, so they are not at random", ""
    return "confirmed", (
        f"{can_learn}, and giving each sample the input of another one costs nothing ({numbers}): the targets tell nothing of these inputs, "
        f"or nothing that {runs.control.windows} steps can find"
    ), ""  # fmt: skip


def changes_the_numbers(runs: Runs, repeats: Sequence[Outcome]) -> Judged:
    """For gradients that are wrong: without the mechanism the losses differ, while a run that is only repeated gives the same."""
    own = {to: mean for to, mean in runs.control.curve}
    apart = [(to, mean) for to, mean in runs.turned.curve if to in own and mean != own[to]]
    shared = sum(1 for to, _ in runs.turned.curve if to in own)
    if not repeats or any(repeat.curve[:shared] != runs.control.curve[:shared] for repeat in repeats):
        return "inconclusive", "the program does not repeat its own numbers, so a change of them shows nothing", ""
    if not apart:
        return "refuted", f"all {shared} losses are the same to the last digit, with the mechanism and without: it does no harm here", ""
    before, after = compared(runs.control, runs.turned)
    end = "" if before is None or after is None else f" ({before.last:.4g} as it is, {after.last:.4g} without it at the end)"
    return "confirmed", (
        f"without the mechanism {len(apart)} of {shared} losses are others{end}, from backward {apart[0][0]} on; a run that is only "
        "repeated gives the same numbers to the last digit"
    ), ""  # fmt: skip


def leaves_the_training_alone(runs: Runs) -> Judged:
    """For a fault of the log: it is there in the run as it is and in the same run once more, and gone with the knob."""
    if not runs.placebos:
        return "inconclusive", "there is no placebo to compare with", ""
    same = runs.turned.curve == runs.control.curve and bool(runs.control.curve)
    beside = f", and all {len(runs.control.curve)} losses of the training are the same to the last digit" if same else ""
    return "confirmed", f"without the mechanism what is logged is right, with it the fault is there each time{beside}", ""


def wrong_whatever_it_costs(rule: str, runs: Runs, open_still: Judged) -> Judged:
    """For a fault by its very nature, where the loss does not tell within a trial what it costs: that it is there, and what it changes.

    Either the mechanism is the harm itself (weights that stand still), and goes with the knob in every run and in none without. Or it makes
    other numbers than the program means to compute: then they change with it, while the same run repeated gives the same.
    """
    _, why, _ = open_still
    if rule in IS_ITSELF_THE_HARM:
        if any(not removed(rule, without, turned) for without, turned in runs.pairs):
            return open_still
        if rule == "stall/no-gradient" and rises(runs) and not runs.in_turns:
            return open_still  # a cut that keeps the loss low may be meant
        return "confirmed", f"without the mechanism {IS_ITSELF_THE_HARM[rule]}; what that costs the loss does not show: {why}", ""
    if rule not in MAKES_OTHER_NUMBERS:
        return open_still
    if runs.same_again is None:
        return "inconclusive", why, "repeat"
    status, words, _ = changes_the_numbers(runs, [runs.same_again])
    if status == "inconclusive":
        return open_still
    return status, words if status == "refuted" else f"{words}. What that costs the loss does not show: {why}", ""


def changes_the_first_gradients(runs: Runs) -> Judged:
    """For gradients that backward computes from other numbers than forward had: the first loss is the same, the first gradients are not."""
    own, without = runs.control.gradients, runs.turned.gradients
    shared = [name for name in own if name in without]
    same_loss = runs.control.curve[:1] == runs.turned.curve[:1] and bool(runs.control.curve)
    if not shared or not same_loss:
        return "inconclusive", "the first losses differ with the knob and without, so their gradients cannot be compared", ""
    if not runs.placebos or any(placebo.gradients != own for placebo in runs.placebos):
        return "inconclusive", "the program does not repeat its own gradients, so a change of them shows nothing", ""
    apart = [name for name in shared if abs(own[name] - without[name]) > ROUNDING * max(abs(own[name]), abs(without[name]))]
    if not apart:
        return "refuted", f"the gradients of all {len(shared)} parameters are the same, with the mechanism and without: it does no harm here", ""
    worst = max(apart, key=lambda name: abs(own[name] - without[name]) / max(abs(own[name]), abs(without[name])))
    return "confirmed", (
        f"the first loss is the same to the last digit, and without the mechanism {len(apart)} of {len(shared)} parameters get another gradient "
        f"from it ({worst}: {without[worst]:.4g} instead of {own[worst]:.4g}); a run that is only repeated gives the same as before"
    ), ""  # fmt: skip


def beside_the_same_again(runs: Runs, symptom: Symptom) -> Judged:
    """An accident that not every seed meets: the same run breaks again at the same place, and with the knob it gets past that place,
    having computed the same numbers up to there."""
    bad, good = BROKEN[symptom]
    again, own, without = runs.same_again, runs.control.curve, dict(runs.turned.curve)
    if again is None:
        return "inconclusive", "another seed alone already removes the mechanism", "repeat"
    if symptom == "hang" and again.kind == "hang" and again.windows == runs.control.windows < runs.turned.windows:
        return "confirmed", (  # ranks that do not wait for each other do not share gradients, so the numbers before tell nothing
            f"without the mechanism it {good} for {runs.turned.windows} steps, where the same run stood still again after "
            f"{again.windows} steps, as before. Another seed need not meet the accident"
        ), ""  # fmt: skip
    if again.kind != runs.control.kind or again.curve != own:
        return "inconclusive", "another seed alone already removes the mechanism, and the program does not repeat its own numbers", ""
    before = own[: next((at for at, (one, other) in enumerate(pairwise(own), 1) if other[0] - one[0] > 1), len(own))]
    same = sum(1 for to, loss in before if without.get(to) == loss)
    if same < len(before) - 1 or not before:  # the last one may already be of the step that broke
        return "inconclusive", "another seed alone already removes the mechanism, and the knob changes more than the step that breaks", ""
    return "confirmed", (
        f"without the mechanism it {good}, where the same run {bad} again at the same step; the {same} losses before are the same to the "
        "last digit. Another seed need not meet the accident"
    ), ""  # fmt: skip


def changes_the_scores(runs: Runs) -> Judged:
    """For a validation that says something else than it should: without the mechanism its scores differ, and a repeat gives the same."""
    kinds = ("scores", "figures")  # what is known to be a score, else whatever is printed under a name
    said = {kind: [getattr(one, kind) for one in (runs.control, runs.turned, *runs.placebos)] for kind in kinds}
    own, without, *repeats = next((rows for rows in said.values() if set(rows[0]) & set(rows[1])), said["scores"])
    shared = [name for name in own if name in without]
    if not shared:
        return "inconclusive", "the mechanism is real and was removed, but the trials log and print no score of a validation to compare", ""
    repeated = [name for name in shared if all(repeat.get(name) == own[name] for repeat in repeats)]
    if not repeats or not repeated:
        return "inconclusive", "the program does not repeat its own scores, so a change of them shows nothing", ""
    other = [name for name in repeated if without[name] != own[name]]
    if not other:
        return "refuted", f"all {len(repeated)} scores are the same, with the mechanism and without: it does no harm here", ""
    words = ", ".join(f"{name} {without[name]:.4g} instead of {own[name]:.4g}" for name in other[:3])
    return "confirmed", f"without the mechanism validation says {words}; a run that is only repeated gives the same as before", ""


def scores_better(runs: Runs) -> Judged:
    """By the program's own score: every run without the mechanism better than every run with it, three against three."""
    measure = ends.choose([*runs.controls, *runs.all_turned])
    if measure is None or measure.name == ends.TRAINING_LOSS:
        return "inconclusive", "the mechanism is real and was removed; its harm is not in the training loss, and no score is logged or printed", ""
    sides = ([ends.value(one, measure) for one in side] for side in (runs.controls, runs.all_turned))
    control, turned = ([one for one in side if one is not None] for side in sides)
    with_it, without = (", ".join(f"{one:.4g}" for one in side) for side in (control, turned))
    words = f"{measure.name} ends at {without}, where it ends at {with_it} with it"
    apart = min((measure.gain(before, after) for before in control for after in turned), default=0.0) > 0
    if apart and len(control) >= 3 and len(turned) >= 3:
        return "confirmed", f"without the mechanism {words}", ""
    return "inconclusive", f"the mechanism is real and was removed; {words}", runs.other_seeds if apart else ""

