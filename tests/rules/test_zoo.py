"""The zoo: each sick program gets its rule as the first finding, cured and healthy ones get nothing above a note."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from watching import ZOO, Watched

sys.path.insert(0, str(ZOO))
from check import Specimen, judge, specimens

NEWER = ("nan/", "autograd/", "precision/", "checkpoint/", "logging/", "crash/")
NEED_FRAMEWORKS = ("healthy/lightning", "healthy/hf_", "healthy/accelerate", "stall/steps-withheld")
QUICK_HEALTHY = (
    "gan_two_optimizers", "gradient_accumulation", "frozen_backbone", "lbfgs_closure", "warmup_from_zero", "policy_gradient",
    "vae", "simsiam_stop_gradient", "ema_teacher", "already_converged", "multitask_detach", "tied_weights",
    "tiny_regression_loss", "sam_optimizer", "pcgrad_surgery", "adversarial_fgsm", "adversary_after_pretraining", "grad_scaler_early_skips",
    "plateau_then_learn", "noisy_labels", "contrastive_infonce", "frozen_batchnorm_finetune", "skip_nonfinite_guard",
)  # fmt: skip


def chosen() -> list[Specimen]:
    """Every sick program; of the cured and healthy ones a spread (`make zoo` runs all)."""
    everything = [s for s in specimens([]) if not s.about_standstills]  # those are in tests/supervise
    sick = [s for s in everything if s.expected is not None]
    cured = [s for s in everything if s.name.endswith(" cured") and "--" not in s.name]
    healthy = [s for s in everything if s.name.removeprefix("healthy/") in QUICK_HEALTHY]
    return [s for s in sick + cured + healthy if not s.name.startswith(NEED_FRAMEWORKS)]


def marked(everything: list[Specimen]) -> Iterator[Any]:
    """Of each kind one sick program is enough for `make test`, of their other forms every fourth, and every sixth cured twin."""
    twins = [s.name for s in everything if s.name.endswith(" cured")]
    forms = [s.name for s in everything if "--" in s.name]
    short = {*twins[::6], *forms[::4]}
    for specimen in everything:
        left_out = specimen.name not in short and specimen.name in (*twins, *forms)
        longer = left_out or (specimen.name.startswith(NEWER) and ("--" in specimen.name or specimen.expected is None))
        yield pytest.param(specimen, marks=pytest.mark.long) if longer else specimen


@pytest.mark.parametrize("specimen", list(marked(chosen())), ids=lambda specimen: specimen.name.replace(" ", "-"))
def test_says_what_is_wrong_and_nothing_else(specimen: Specimen, run_zoo: Callable[..., Watched]) -> None:
    watched = run_zoo(str(specimen.script.relative_to(ZOO)))
    passed, words = judge(specimen, watched.report)
    assert passed, f"{words}\n{watched.why()}"


@pytest.mark.parametrize("name", ["params-not-in-optimizer", "no-gradient--detach", "learning-rate-zero", "double-softmax"])
def test_structural_faults_are_known_within_three_windows(name: str, run_zoo: Callable[..., Watched]) -> None:
    watched = run_zoo(f"stall/{name}/sick.py")
    assert watched.findings[0]["step"] <= 3
