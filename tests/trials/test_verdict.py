"""The three conditions of a proof, on made-up outcomes."""

from __future__ import annotations

import random

import pytest

from trainsleuth.trials.measure import learning, learns
from trainsleuth.trials.trial import Kind, Known, Outcome, Role
from trainsleuth.trials.verdict import gains, judge, verified

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


def test_confirmed_when_the_control_learns_but_clearly_less() -> None:
    control, placebo = outcome(2.48, 1.5, 3000), outcome(2.48, 1.45, 3000, seed=1)
    assert status(control, outcome(2.48, 0.3, 0), placebo) == "confirmed"


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


def test_a_patch_is_verified_by_mechanism_and_loss() -> None:
    assert verified(RULE, FLAT, outcome(2.48, 0.3, 0))[0]
    assert not verified(RULE, FLAT, outcome(2.48, 2.48, 0))[0]
    assert not verified(RULE, FLAT, outcome(2.48, 0.3, 3000))[0]
    assert not verified(RULE, FLAT, Outcome("crash", "SyntaxError"))[0]


def test_a_patch_after_which_the_loss_ends_higher_is_not_verified_and_the_numbers_are_told() -> None:
    rule = "mode/eval-during-training"
    control, patched = outcome(1.5, 0.32, 4, rule=rule), outcome(1.5, 0.93, 0, rule=rule, seed=1)
    ok, why = verified(rule, control, patched)
    assert not ok
    assert "ends higher" in why
    assert "not the same quantity" in why
    verdict = judge(rule, known("control", control), known("knob", patched), [known("placebo", outcome(1.5, 0.38, 4, rule=rule))])
    assert verdict.status == "inconclusive"
    assert "ends higher" in verdict.why


def test_a_patch_without_an_effect_on_the_loss_is_not_verified() -> None:
    ok, why = verified(RULE, outcome(2.48, 0.50, 3000), outcome(2.48, 0.51, 0, seed=1))
    assert not ok
    assert "does not tell the difference" in why


def test_a_noisy_first_loss_of_another_seed_does_not_hide_a_gain() -> None:
    control = outcome(0.19, 0.0247, 7, noise=0.0005)
    placebo, turned = outcome(0.30, 0.0235, 7, noise=0.0005, seed=1), outcome(0.19, 0.0038, 0, noise=0.0005, seed=2)
    assert status(control, turned, placebo) == "confirmed"


def test_a_gain_that_a_seed_could_make_is_told_as_that() -> None:
    control, placebo, turned = outcome(2.48, 1.5, 3000), outcome(2.48, 0.8, 3000, seed=1), outcome(2.48, 0.7, 0)
    verdict = judge(RULE, known("control", control), known("knob", turned), [known("placebo", placebo)])
    assert verdict.status == "inconclusive"
    assert "another seed moves the end of the loss" in verdict.why
