"""The three conditions of a proof, on made-up outcomes."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainsleuth.trials.chance import ERROR_RATE, ends_lower, happens_less, lower_in_pairs
from trainsleuth.trials.measure import learning, learns, measure
from trainsleuth.trials.runs import Symptom, gains
from trainsleuth.trials.sandbox import Ended
from trainsleuth.trials.trial import Kind, Known, Outcome, Role, Trial
from trainsleuth.trials.verdict import Verdict, judge, judge_suspicion, nothing_to_remove

RULE = "stall/params-not-in-optimizer"


def curve(first: float, last: float, noise: float = 0.02, seed: int = 0, length: int = 100) -> tuple[tuple[int, float], ...]:
    chance = random.Random(seed)
    return tuple((n + 1, last + (first - last) * 0.95**n + chance.gauss(0, noise)) for n in range(length))


def outcome(first: float, last: float, mechanism: float, *, noise: float = 0.02, seed: int = 0, length: int = 100,
            acted: bool = True, rule: str = RULE) -> Outcome:  # fmt: skip
    points = curve(first, last, noise, seed, length)
    measured = learning(points)
    assert measured is not None
    kind: Kind = "healthy" if learns(measured) else "stalled"
    return Outcome(kind, "", measured, {rule: mechanism}, length, 1.0, acted, points)


def known(role: Role, what: Outcome) -> Known:
    return Known("T1", role, role, role, what)


def status(control: Outcome, turned: Outcome, *placebos: Outcome, rule: str = RULE) -> str:
    return judge(rule, known("control", control), known("knob", turned), [known("placebo", p) for p in placebos]).status


FLAT, FLAT_TOO = outcome(2.48, 2.48, 3000), outcome(2.49, 2.48, 3000, seed=1)


def test_confirmed_when_mechanism_and_outcome_flip_and_the_placebo_does_neither() -> None:
    assert status(FLAT, outcome(2.48, 0.3, 0), FLAT_TOO) == "confirmed"


def test_confirmed_when_the_control_learns_but_clearly_less_with_every_seed() -> None:
    control, placebos = outcome(2.48, 1.5, 3000), [outcome(2.48, last, 3000, seed=n) for n, last in ((1, 1.45), (2, 1.55))]
    turned, repeat = outcome(2.48, 0.3, 0), outcome(2.48, 0.4, 0, seed=1)
    first = judge(RULE, known("control", control), known("knob", turned), [known("placebo", placebos[0])])
    assert (first.status, first.more) == ("inconclusive", "seeds")
    second = judge(
        RULE, known("control", control), known("knob", turned), [known("placebo", p) for p in placebos], [known("knob", repeat)]
    )
    assert (second.status, second.more) == ("confirmed", "")


def test_a_better_loss_with_the_mechanism_as_before_is_a_workaround() -> None:
    assert status(FLAT, outcome(2.48, 0.3, 3000), FLAT_TOO) == "workaround"


def test_refuted_when_the_mechanism_goes_and_the_flat_loss_stays() -> None:
    assert status(FLAT, outcome(2.48, 2.48, 0, seed=2), FLAT_TOO) == "refuted"


def test_inconclusive_when_a_learning_loss_cannot_tell() -> None:
    control, placebo = outcome(2.48, 0.50, 3000), outcome(2.48, 0.52, 3000, seed=1)
    assert status(control, outcome(2.48, 0.51, 0, seed=2), placebo) == "inconclusive"


def test_inconclusive_when_another_seed_does_as_much_as_the_knob() -> None:
    control, placebo = outcome(2.48, 1.5, 3000), outcome(2.48, 0.8, 3000, seed=1)
    assert status(control, outcome(2.48, 0.7, 0), placebo) == "inconclusive"


def test_inconclusive_when_the_control_does_not_reproduce() -> None:
    assert status(outcome(2.48, 0.3, 0), outcome(2.48, 0.3, 0), FLAT_TOO) == "inconclusive"
    assert status(Outcome("crash", "it crashed"), outcome(2.48, 0.3, 0), FLAT_TOO) == "inconclusive"


def test_inconclusive_when_a_seed_alone_removes_the_mechanism() -> None:
    assert status(FLAT, outcome(2.48, 0.3, 0), outcome(2.48, 2.47, 0)) == "inconclusive"


def test_inconclusive_without_a_placebo() -> None:
    assert status(FLAT, outcome(2.48, 0.3, 0)) == "inconclusive"
    assert status(FLAT, outcome(2.48, 0.3, 0), Outcome("crash", "", None, {RULE: 3000})) == "inconclusive"


@pytest.mark.parametrize("turned", [outcome(2.48, 0.3, 0, acted=False), Outcome("crash", "the knob's own fault")])
def test_not_applicable_when_the_knob_is_idle_or_breaks_the_program(turned: Outcome) -> None:
    assert status(FLAT, turned, FLAT_TOO) == "not applicable"


def test_frozen_weights_are_confirmed_by_weights_that_move() -> None:
    rule = "stall/params-frozen"
    control, placebo = outcome(1.6, 1.6, 0.0, rule=rule), outcome(1.61, 1.6, 0.0, rule=rule, seed=1)
    assert status(control, outcome(1.6, 0.2, 1.0, rule=rule), placebo, rule=rule) == "confirmed"


def test_a_trial_that_was_cut_short_is_compared_on_what_it_has() -> None:
    long, short = outcome(2.48, 0.3, 3000), outcome(2.48, 0.3, 0, length=10)
    assert not gains(short, long)


def test_a_run_that_explodes_at_first_does_not_hide_what_another_one_gains() -> None:
    def after_explosion(seed: int) -> Outcome:
        flat = outcome(2.3, 2.3, 3000, seed=seed)
        return replace(flat, curve=((1, 5e4), (2, 2e4), (3, 4e3), (4, 900.0), (5, 100.0), *flat.curve[5:]))

    assert status(after_explosion(0), outcome(13.0, 0.02, 0), after_explosion(1)) == "confirmed"


def test_a_slow_drift_within_the_noise_is_no_learning() -> None:
    noisy = learning(curve(1.0, 0.97, noise=0.2))
    assert noisy is not None
    assert not learns(noisy)


def test_learning_is_seen_through_noise() -> None:
    noisy = learning(curve(2.3, 1.2, noise=0.2))
    assert noisy is not None
    assert learns(noisy)


def test_a_negative_loss_that_falls_is_learning() -> None:
    falling = learning(curve(-1.0, -5.0))
    assert falling is not None
    assert learns(falling)


def test_a_knob_after_which_the_loss_ends_higher_settles_nothing_and_the_numbers_are_told() -> None:
    rule = "mode/eval-during-training"
    control, patched = outcome(1.5, 0.32, 4, rule=rule), outcome(1.5, 0.93, 0, rule=rule, seed=1)
    verdict = judge(rule, known("control", control), known("knob", patched), [known("placebo", outcome(1.5, 0.38, 4, rule=rule))])
    assert verdict.status == "inconclusive"
    assert "ends higher" in verdict.why


def test_a_noisy_first_loss_of_another_seed_does_not_hide_a_gain() -> None:
    control = outcome(0.19, 0.0247, 7, noise=0.0005)
    placebo, turned = outcome(0.30, 0.0235, 7, noise=0.0005, seed=1), outcome(0.19, 0.0038, 0, noise=0.0005, seed=2)
    assert status(control, turned, placebo) == "confirmed"


def test_a_gain_that_a_seed_could_make_is_told_as_that() -> None:
    control, placebo, turned = outcome(2.48, 1.5, 3000), outcome(2.48, 0.8, 3000, seed=1), outcome(2.48, 0.7, 0)
    verdict = judge(RULE, known("control", control), known("knob", turned), [known("placebo", placebo)])
    assert verdict.status == "inconclusive"
    assert "another seed moves that end by" in verdict.why
    assert "chance" in verdict.why


HANG = "hang/openmp-thread-limit"


def ended(kind: Kind, mechanism: float, rule: str = HANG, **more: Any) -> Outcome:
    return Outcome(kind, kind, mechanism={rule: mechanism}, windows=20, **more)


def settled(symptom: Symptom, control: Outcome, turned: list[Outcome], placebos: list[Outcome], rule: str = HANG) -> Verdict:
    return judge(rule, known("control", control), known("knob", turned[0]), [known("placebo", p) for p in placebos],
                 [known("knob", one) for one in turned[1:]], symptom)  # fmt: skip


@pytest.mark.parametrize("symptom", ["hang", "crash", "nan"])
def test_what_breaks_is_confirmed_by_three_runs_against_three(symptom: Symptom) -> None:
    sick, sound = ended(symptom, 2), ended("healthy", 0)
    first = settled(symptom, sick, [sound], [sick])
    assert (first.status, first.more) == ("inconclusive", "seeds")
    assert settled(symptom, sick, [sound] * 3, [sick] * 2).status == "confirmed"


def test_what_breaks_only_now_and_then_is_not_confirmed() -> None:
    sick, sound = ended("hang", 2), ended("healthy", 0)
    assert settled("hang", sick, [sound] * 3, [sick, ended("healthy", 2)]).status == "inconclusive"


def test_a_hang_that_goes_away_while_its_cause_stays_is_a_workaround() -> None:
    assert settled("hang", ended("hang", 2), [ended("healthy", 2)], [ended("hang", 2)]).status == "workaround"


def test_a_hang_that_stays_without_the_suspected_cause_refutes_it() -> None:
    assert settled("hang", ended("hang", 2), [ended("hang", 0)], [ended("hang", 2)]).status == "refuted"


def test_inconclusive_when_the_control_does_not_hang_again() -> None:
    verdict = settled("hang", ended("healthy", 2), [ended("healthy", 0)], [ended("healthy", 2)])
    assert verdict.status == "inconclusive"
    assert "does not show the symptom again" in verdict.why


def test_another_crash_is_the_knobs_own() -> None:
    control = ended("crash", 2, crash_kind="IndexError")
    assert settled("crash", control, [ended("crash", 0, crash_kind="TypeError")], [control]).status == "not applicable"
    assert settled("crash", control, [ended("crash", 0, crash_kind="IndexError")], [control]).status == "refuted"


def test_a_mechanism_without_a_number_is_what_its_rule_sees() -> None:
    rule = "stall/double-softmax"
    there, gone = {"fired": {rule: "train.py:3"}}, {"fired": {}}
    flat = [replace(outcome(2.48, 2.48, 0, seed=n), mechanism={}, **there) for n in (0, 1)]
    falling = outcome(2.48, 0.3, 0)
    assert status(flat[0], replace(falling, mechanism={}, **gone), flat[1], rule=rule) == "confirmed"
    assert status(flat[0], replace(falling, mechanism={}, **there), flat[1], rule=rule) == "workaround"
    unsure = replace(falling, mechanism={}, missing=(rule,))
    assert status(flat[0], unsure, flat[1], rule=rule) == "workaround"


def suspicion(control: Outcome, turned: Outcome, placebo: Outcome, rule: str | None = None, symptom: Symptom = "loss") -> Verdict:
    return judge_suspicion("knob/x", rule, known("control", control), known("knob", turned), [known("placebo", placebo)], symptom=symptom)


def test_a_popular_suspicion_is_refuted_with_its_numbers() -> None:
    same = suspicion(FLAT, FLAT, FLAT_TOO)
    assert same.status == "refuted"
    assert "the same to the last digit" in same.why
    other = suspicion(FLAT, outcome(2.48, 2.48, 3000, seed=5), FLAT_TOO)
    assert other.status == "refuted"
    assert "2.4776 as it is, 2.4764 with the knob" in other.why
    assert suspicion(ended("hang", 2), ended("hang", 2), ended("hang", 2), HANG, "hang").status == "refuted"


def test_a_suspicion_that_helps_is_a_workaround_unless_it_removes_the_known_mechanism() -> None:
    assert suspicion(FLAT, outcome(2.48, 0.3, 3000), FLAT_TOO, RULE).status == "workaround"
    assert suspicion(FLAT, outcome(2.48, 0.3, 0), FLAT_TOO, RULE).status == "confirmed"
    assert suspicion(FLAT, outcome(2.48, 0.3, 0), FLAT_TOO).status == "workaround"


def test_what_does_not_matter_is_proved_by_exchanging_it() -> None:
    rule = "stall/input-ignored"
    control = replace(outcome(0.7, 0.69, 0), mechanism={}, fired={rule: ""})
    placebo = replace(outcome(0.7, 0.69, 0, seed=1), mechanism={}, fired={rule: ""})
    assert status(control, control, placebo, rule=rule) == "confirmed"
    assert status(control, replace(outcome(0.7, 0.69, 0, seed=2), mechanism={}), placebo, rule=rule) == "refuted"


@pytest.mark.parametrize(
    ("scores", "repeated", "expected"),
    [(0.128, 0.327, "confirmed"), (0.327, 0.327, "refuted"), (0.128, 0.3, "inconclusive"), (None, 0.327, "inconclusive")],
)
def test_a_validation_is_judged_by_its_scores(scores: float | None, repeated: float, expected: str) -> None:
    rule = "mode/train-during-validation"
    control = replace(outcome(2.0, 1.0, 0), mechanism={}, fired={rule: ""}, scores={"val_loss": 0.327})
    placebo = replace(control, scores={"val_loss": repeated})
    turned = replace(control, fired={}, scores={} if scores is None else {"val_loss": scores})
    assert status(control, turned, placebo, rule=rule) == expected


@pytest.mark.parametrize(("turned", "expected"), [((0.9, 0.92, 0.93), "confirmed"), ((0.9, 0.7, 0.93), "inconclusive")])
def test_what_a_training_loss_cannot_show_is_judged_by_the_score(turned: tuple[float, ...], expected: str) -> None:
    rule = "data/not-shuffled"
    flat = replace(FLAT, mechanism={}, fired={rule: ""})
    with_it = [replace(flat, scores={"val_acc": score}) for score in (0.8, 0.81, 0.79)]
    without = [replace(flat, fired={}, scores={"val_acc": score}) for score in turned]
    first = judge(rule, known("control", with_it[0]), known("knob", without[0]), [known("placebo", with_it[1])])
    assert (first.status, first.more) == ("inconclusive", "seeds")
    last = judge(rule, known("control", with_it[0]), known("knob", without[0]), [known("placebo", one) for one in with_it[1:]],
                 [known("knob", one) for one in without[1:]])  # fmt: skip
    assert last.status == expected


def test_a_knob_that_does_nothing_is_confirmed_in_less_than_five_per_cent_of_the_cases() -> None:
    chance = random.Random(0)
    wrong = 0
    for _ in range(2000):
        ends = [chance.gauss(1.0, 0.1) for _ in range(9)]
        looks = [(ends[: n + 1], ends[5 : 5 + n]) for n in range(1, 5)]
        in_pairs = lower_in_pairs([control - turned for control, turned in zip(ends, ends[5:])], 0.0)
        wrong += in_pairs or any(ends_lower(control, turned, 0.0) for control, turned in looks)
    assert wrong / 2000 < ERROR_RATE


def with_seed(gain: float, seed: int) -> tuple[Outcome, Outcome]:
    """Two runs over the same batches, whose losses depend on the seed far more than on the knob."""
    rule = "stall/accumulated-gradients-discarded"
    without, turned = outcome(2.0, 1.0 + 0.1 * seed, 1.0, rule=rule, seed=seed), outcome(2.0, 1.0 + 0.1 * seed, 0.0, rule=rule, seed=seed)
    return without, replace(turned, curve=tuple((to, loss * (1 - gain * to / turned.curve[-1][0])) for to, loss in turned.curve))


@pytest.mark.parametrize(("gain", "expected"), [(0.02, "confirmed"), (0.0, "inconclusive"), (0.004, "inconclusive")])
def test_a_small_gain_that_every_seed_shows_is_seen_in_pairs(gain: float, expected: str) -> None:
    rule = "stall/accumulated-gradients-discarded"
    pairs = [with_seed(gain * (1 + 0.05 * seed), seed) for seed in range(4)]
    (control, turned), others = pairs[0], pairs[1:]
    placebos = [known("placebo", without) for without, _ in others]
    first = judge(rule, known("control", control), known("knob", turned), placebos[:1])
    assert first.more == ("seeds" if expected == "confirmed" else "")
    last = judge(rule, known("control", control), known("knob", turned), placebos, [known("knob", one) for _, one in others])
    assert (last.status, last.more) == (expected, "")


@pytest.mark.parametrize(("changed", "repeated", "expected"), [(True, True, "confirmed"), (False, True, "refuted"), (True, False, "inconclusive")])
def test_numbers_that_are_wrong_by_their_nature_are_proved_beside_the_same_run_once_more(changed: bool, repeated: bool, expected: str) -> None:
    rule = "precision/clip-before-unscale"
    control = replace(outcome(2.0, 1.0, 0, seed=0), mechanism={}, fired={rule: ""})
    otherwise = replace(control, curve=tuple((to, loss * 1.0001) for to, loss in control.curve))
    turned = replace(otherwise if changed else control, fired={})
    placebo = known("placebo", replace(outcome(2.0, 1.0, 0, seed=1), mechanism={}, fired={rule: ""}))
    first = judge(rule, known("control", control), known("knob", turned), [placebo])
    assert (first.status, first.more) == ("inconclusive", "repeat")
    again = known("placebo", control if repeated else otherwise)
    assert judge(rule, known("control", control), known("knob", turned), [placebo], same_again=again).status == expected


@pytest.mark.parametrize(("still_there", "expected"), [(False, "confirmed"), (True, "inconclusive")])
def test_a_mechanism_that_is_itself_the_harm_is_proved_by_its_going(still_there: bool, expected: str) -> None:
    rule = "precision/norm-weights-frozen"
    control = replace(outcome(2.0, 1.0, 0), mechanism={}, fired={rule: ""})
    turned = replace(control, fired={rule: ""} if still_there else {})
    assert status(control, turned, replace(control), rule=rule) == expected


def test_the_chance_of_three_against_three_is_one_in_twenty() -> None:
    assert happens_less([True] * 3, [False] * 3) == pytest.approx(0.05)
    assert happens_less([True] * 3, [True] * 3) == 1.0
    assert happens_less([True, True, False], [False] * 3) == pytest.approx(0.2)


def test_a_suspicion_of_what_the_program_does_not_do_is_refuted_by_its_number() -> None:
    rule = "stall/accumulated-gradients-discarded"
    control, idle = (replace(one, mechanism={rule: 0.0}) for one in (FLAT, replace(FLAT, kind="not applicable", acted=False)))
    verdict = judge_suspicion("knob/x", None, known("control", control), known("knob", idle), [known("placebo", FLAT_TOO)], removes=(rule,))
    assert verdict.status == "refuted"
    assert "0.0 lost micro-batches a step" in verdict.why


def test_a_loss_that_ends_a_little_lower_and_is_flat_all_the_same_keeps_its_symptom() -> None:
    flat = {"stall/flat-loss": ""}
    control, turned = replace(FLAT, fired=flat), replace(outcome(2.48, 2.40, 3000, noise=0.002), fired=flat)
    seeds = [known("placebo", replace(FLAT_TOO, fired=flat))] * 4
    verdict = judge_suspicion("knob/x", None, known("control", control), known("knob", turned), seeds, [known("knob", turned)] * 3,
                              symptoms=("stall/flat-loss",))  # fmt: skip
    assert verdict.status == "refuted"
    assert "flat loss is as before" in verdict.why


WRONG = "autograd/custom-backward-wrong"


@pytest.mark.parametrize(
    ("turned", "repeated", "expected"),
    [
        (outcome(2.48, 1.9, 0, seed=5, rule=WRONG), outcome(2.48, 2.0, 1, rule=WRONG), "confirmed"),
        (outcome(2.48, 2.0, 0, rule=WRONG), outcome(2.48, 2.0, 1, rule=WRONG), "refuted"),
        (outcome(2.48, 1.9, 0, seed=5, rule=WRONG), outcome(2.48, 2.0, 1, seed=7, rule=WRONG), "inconclusive"),
    ],
    ids=["other numbers", "the same numbers", "no number is repeated"],
)
def test_a_wrong_gradient_is_proved_by_the_numbers_that_it_changes(turned: Outcome, repeated: Outcome, expected: str) -> None:
    assert status(outcome(2.48, 2.0, 1, rule=WRONG), turned, repeated, rule=WRONG) == expected


def test_where_the_guilty_lines_were_rewritten_a_run_that_goes_on_has_lost_the_mechanism() -> None:
    rule, stands = "hang/queue-nobody-feeds", Outcome("hang", fired={"hang/queue-nobody-feeds": "a.py:3"})
    trials = [known("control", stands), known("knob", Outcome("healthy", "went on to its end")), [known("placebo", stands)] * 2]
    repeats = [known("knob", Outcome("healthy"))] * 2
    assert judge(rule, *trials, repeats, "hang").status == "workaround"  # type: ignore[arg-type]
    assert judge(rule, *trials, repeats, "hang", rewritten=True).status == "confirmed"  # type: ignore[arg-type]


@pytest.mark.parametrize(("line", "expected"), [("data.py:8", "confirmed"), ("train.py:30", "refuted")], ids=["the same line", "another line"])
def test_a_standstill_that_stays_at_its_line_without_the_workers_is_made_by_that_line(line: str, expected: str) -> None:
    rule = "hang/dataloader-worker"
    control = Outcome("hang", mechanism={rule: 2}, fired={rule: "data.py:8"})
    turned = Outcome("hang", mechanism={rule: 0}, fired={"hang/standstill": line})
    verdict = judge(rule, known("control", control), known("knob", turned), [known("placebo", control)] * 2, symptom="hang")
    assert verdict.status == expected
    assert ("data.py:8" in verdict.why) is (expected == "confirmed")


@pytest.mark.parametrize(("as_it_is", "expected"), [(-900.0, "confirmed"), (0.2, "inconclusive")], ids=["below zero", "above zero"])
def test_labels_that_drive_a_cross_entropy_below_zero_are_proved_by_the_loss_above_it(as_it_is: float, expected: str) -> None:
    rule = "data/labels-out-of-range"
    control, placebo = (outcome(2.48, as_it_is, 40, seed=seed, rule=rule) for seed in (0, 1))
    assert status(control, outcome(2.48, 0.3, 0, rule=rule), placebo, rule=rule) == expected


@pytest.mark.parametrize(("last", "expected"), [(0.4, "confirmed"), (2.48, "inconclusive")], ids=["learns", "does not learn"])
def test_labels_that_are_all_the_same_are_proved_by_a_program_that_learns_once_they_vary(last: float, expected: str) -> None:
    rule = "data/labels-constant"
    control, placebo = (outcome(2.48, 0.0, 40, seed=seed, noise=0.001, rule=rule) for seed in (0, 1))
    assert status(control, outcome(2.48, last, 0, rule=rule), placebo, rule=rule) == expected


def test_a_trial_that_the_budget_ends_before_its_first_step_says_nothing(tmp_path: Path) -> None:
    cut = measure(Trial("placebo", "other seed", (), 100, ""), tmp_path, Ended("time", None, 7.5))
    assert (cut.kind, cut.why) == ("not applicable", "the time was over after 8 s, before its first step")
    rule, broken = "nan/sqrt-at-zero", Outcome("nan", fired={"nan/sqrt-at-zero": "a.py:3"})
    whole = Outcome("healthy", mechanism={rule: 0})
    verdict = judge(rule, known("control", broken), known("knob", whole), [known("placebo", broken), known("placebo", cut)], symptom="nan")
    assert "another seed" not in verdict.why


def accident(kind: Kind, steps: int, seed: int = 0) -> Outcome:
    """A run whose loss is finite for so many steps."""
    return Outcome(kind, "", None, {}, 60, 1.0, True, curve(2.0, 1.0, seed=seed, length=60)[:steps])


def verdict_on_an_accident(turned: Outcome, again: Outcome | None) -> Verdict:
    placebo, repeated = known("placebo", accident("healthy", 60, seed=1)), None if again is None else known("placebo", again)
    control = known("control", accident("nan", 30))
    return judge("nan/sqrt-at-zero", control, known("knob", turned), [placebo], symptom="nan", same_again=repeated)


def test_an_accident_that_another_seed_does_not_meet_is_proved_beside_the_same_run_once_more() -> None:
    first = verdict_on_an_accident(accident("healthy", 60), None)
    assert (first.status, first.more) == ("inconclusive", "repeat")
    assert verdict_on_an_accident(accident("healthy", 60), accident("nan", 30)).status == "confirmed"


def test_a_knob_that_changes_the_numbers_before_the_accident_may_have_passed_by_it() -> None:
    assert verdict_on_an_accident(accident("healthy", 60, seed=2), accident("nan", 30)).status == "inconclusive"


def test_an_accident_that_does_not_happen_again_proves_nothing() -> None:
    assert verdict_on_an_accident(accident("healthy", 60), accident("nan", 20)).status == "inconclusive"


def test_a_loss_that_begins_to_fall_is_no_refutation() -> None:
    control, placebo = outcome(0.6931, 0.6931, 3000, noise=0.002), outcome(0.6931, 0.6931, 3000, noise=0.002, seed=1)
    turned = outcome(0.6931, 0.6850, 0, noise=0.002, seed=2)
    assert turned.kind == "stalled"
    assert status(control, turned, placebo) == "inconclusive"


def test_a_nan_that_comes_and_goes_is_a_symptom_of_runs_that_get_over_it() -> None:
    rule = "nan/zero-division"
    sick, sound = (replace(outcome(2.0, 0.5, 0, rule="another"), not_finite=count) for count in (7, 0))
    sick = replace(sick, fired={rule: "train.py:3"})
    assert settled("nan", sick, [sound] * 3, [sick] * 2, rule).status == "confirmed"
    assert settled("nan", sick, [sick] * 3, [sick] * 2, rule).status == "inconclusive"
    assert settled("nan", sound, [sound] * 3, [sound] * 2, rule).status == "inconclusive"


@pytest.mark.parametrize(("gradient", "repeated", "expected"), [(0.2, 0.5, "confirmed"), (0.5, 0.5, "refuted"), (0.2, 0.4, "inconclusive")])
def test_what_backward_draws_anew_is_proved_by_the_first_gradients(gradient: float, repeated: float, expected: str) -> None:
    rule = "checkpoint/random-inside"
    as_it_is = replace(outcome(2.0, 1.0, 0, rule="another"), fired={rule: "model.py:3"}, gradients={"weight": 0.5, "bias": 0.1})
    turned = replace(as_it_is, fired={}, gradients={"weight": gradient, "bias": 0.1})
    again = replace(as_it_is, gradients={"weight": repeated, "bias": 0.1})
    assert status(as_it_is, turned, again, rule=rule) == expected


def test_pairs_are_not_to_blame_where_not_even_one_batch_is_learnt() -> None:
    rule = "stall/inputs-and-targets-misaligned"
    flat, flat_too, one_batch = outcome(2.48, 2.48, 1, rule=rule), outcome(2.48, 2.48, 1, seed=1, rule=rule), outcome(2.48, 2.46, 0, rule=rule)
    assert by_heart(flat, one_batch, flat_too, None).status == "refuted"


def by_heart(control: Outcome, one_batch: Outcome, placebo: Outcome, exchanged: Outcome | None) -> Verdict:
    return judge(
        "stall/inputs-and-targets-misaligned", known("control", control), known("knob", one_batch), [known("placebo", placebo)], by_heart=True,
        exchanged=None if exchanged is None else known("placebo", exchanged),
    )  # fmt: skip


@pytest.mark.parametrize(("exchanged", "expected"), [(2.47, "confirmed"), (3.1, "refuted")])
def test_wrong_pairs_are_proved_by_one_batch_and_by_exchanged_inputs_together(exchanged: float, expected: str) -> None:
    rule = "stall/inputs-and-targets-misaligned"
    flat, flat_too, one_batch = outcome(2.48, 2.48, 1, rule=rule), outcome(2.48, 2.48, 1, seed=1, rule=rule), outcome(2.48, 0.1, 1, rule=rule)
    first = by_heart(flat, one_batch, flat_too, None)
    assert (first.status, first.more) == ("inconclusive", "exchange")
    assert by_heart(flat, one_batch, flat_too, outcome(2.48, exchanged, 1, seed=3, rule=rule)).status == expected


@pytest.mark.parametrize(("in_turns", "last", "expected"), [(False, 2.48, "confirmed"), (False, 4.0, "inconclusive"), (True, 4.0, "confirmed")])
def test_a_cut_without_which_the_loss_ends_higher_may_be_meant_unless_losses_rival(in_turns: bool, last: float, expected: str) -> None:
    rule = "stall/no-gradient"
    runs = known("control", outcome(2.6, 2.4, 1, rule=rule)), known("knob", outcome(2.6, last, 0, seed=2, rule=rule))
    placebos = [known("placebo", outcome(2.6, 2.4, 1, seed=1, rule=rule))]
    assert judge(rule, *runs, placebos, in_turns=in_turns).status == expected


def test_an_exception_that_bad_numbers_raise_is_the_symptom_of_the_operation_that_made_them() -> None:
    def raising(kind: str) -> Known:
        return known("control", replace(accident("crash", 30), crash_kind=kind, fired={"nan/sqrt-at-zero": "train.py:3"}))

    sound = known("knob", accident("healthy", 60))
    placebos, repeats = [raising("ValueError"), raising("ValueError")], [sound, sound]
    assert judge("nan/sqrt-at-zero", raising("ValueError"), sound, placebos, repeats, symptom="nan").status == "confirmed"
    other = replace(sound, outcome=replace(accident("crash", 30), crash_kind="TypeError"))
    assert judge("nan/sqrt-at-zero", raising("ValueError"), other, placebos, symptom="nan").status == "not applicable"


def stands(windows: int, fired: bool = True) -> Outcome:
    return Outcome("hang", "nothing has moved for 9 s", windows=windows, fired={"ranks/uneven-batches": "train.py:9"} if fired else {})


@pytest.mark.parametrize(("again", "expected"), [(56, "confirmed"), (31, "inconclusive")])
def test_a_standstill_that_another_seed_does_not_meet_is_proved_by_the_same_run_at_the_same_step(again: int, expected: str) -> None:
    goes_on = Outcome("healthy", windows=76)
    rule, control, turned, placebo = "ranks/uneven-batches", known("control", stands(56)), known("knob", goes_on), known("placebo", goes_on)
    first = judge(rule, control, turned, [placebo], symptom="hang", rewritten=True)
    assert (first.status, first.more) == ("inconclusive", "repeat")
    repeated = known("placebo", stands(again))
    assert judge(rule, control, turned, [placebo], symptom="hang", rewritten=True, same_again=repeated).status == expected


def test_losses_that_explode_are_compared_by_their_size_and_not_by_their_mean() -> None:
    wild = [outcome(2.0, last, 1, noise=0.1, seed=n, length=200) for n, last in enumerate((144.0, 9000.0, 1.3e5, 700.0, 40.0))]
    tame = [outcome(2.0, 0.14, 0, seed=n, length=200) for n in range(4)]
    verdict = judge(
        "stall/gradients-never-cleared", known("control", replace(wild[0], mechanism={"stall/gradients-never-cleared": 1})),
        known("knob", replace(tame[0], mechanism={"stall/gradients-never-cleared": 0})),
        [known("placebo", replace(one, mechanism={"stall/gradients-never-cleared": 1})) for one in wild[1:]],
        [known("knob", replace(one, mechanism={"stall/gradients-never-cleared": 0})) for one in tame[1:]],
    )  # fmt: skip
    assert verdict.status == "confirmed", verdict.why


def test_a_mechanism_that_is_counted_and_not_there_needs_no_trial() -> None:
    control = outcome(2.48, 2.48, 0)
    assert "nothing of the kind" in nothing_to_remove((RULE,), control)
    assert nothing_to_remove((RULE,), FLAT) == ""
    assert nothing_to_remove((), control) == ""
