"""What counts as verified: the finding is gone, nothing worse came instead, and the outcome is better."""

from __future__ import annotations

import time
from pathlib import Path

from trainsleuth.case.folder import open_case
from trainsleuth.remedies.patch import Patch
from trainsleuth.remedies.verify import Checked, Shown, check, environment_words, judge
from trainsleuth.rules.kinds import Finding
from trainsleuth.trials.measure import learning
from trainsleuth.trials.settle import Bench
from trainsleuth.trials.trial import Outcome
from watching import ForkServer, needs_sandbox

RULE = "stall/double-softmax"


def outcome(last: float, kind: str = "healthy", why: str = "") -> Outcome:
    curve = tuple((step, 2.5 + (last - 2.5) * min(1.0, step / 60) + 0.01 * (step % 2)) for step in range(1, 101))
    return Outcome(kind, why, learning(curve), {}, 100, 1.0, True, curve)  # type: ignore[arg-type]


def shown(rules: set[str], last: float = 2.5, kind: str = "healthy", *, windows: int = 100, stood: bool = False, why: str = "") -> Shown:
    return Shown(None if stood else outcome(last, kind, why), frozenset(rules), frozenset(rules), windows, not stood, kind == "crash", stood)


def test_gone_and_a_lower_loss_is_verified() -> None:
    assert judge(RULE, shown({RULE}, 2.5), shown(set(), 0.3)) == (True, "the finding is gone, and the loss ends lower")


def test_the_same_finding_is_not() -> None:
    assert not judge(RULE, shown({RULE}, 2.5), shown({RULE}, 0.3))[0]


def test_gone_without_a_gain_is_told_and_is_not_verified() -> None:
    ok, why = judge(RULE, shown({RULE}, 0.5), shown(set(), 0.5))
    assert not ok
    assert "does not tell the difference" in why


def test_where_the_harm_is_not_in_the_training_loss_the_finding_must_be_gone() -> None:
    assert judge("mode/train-during-validation", shown({"mode/train-during-validation"}, 0.5), shown(set(), 0.5))[0]


def test_a_new_sickness_instead_is_not_a_cure() -> None:
    ok, why = judge(RULE, shown({RULE}, 2.5), shown({"nan/loss-not-finite"}, 0.3))
    assert not ok
    assert "nan/loss-not-finite" in why


def test_a_crash_that_is_gone_is_verified_and_a_new_one_is_not() -> None:
    crash = shown({"data/labels-one-hot"}, kind="crash", why="ValueError: shapes")
    assert judge("data/labels-one-hot", crash, shown(set(), 0.3))[0]
    ok, why = judge(RULE, shown({RULE}), shown(set(), kind="crash", why="NameError: nn"))
    assert not ok
    assert "NameError" in why


def test_a_standstill_must_be_passed() -> None:
    stood = shown({"hang/python-lock"}, windows=30, stood=True)
    assert judge("hang/python-lock", stood, shown(set(), windows=60))[0]
    assert not judge("hang/python-lock", stood, shown(set(), windows=12))[0]
    ok, why = judge("hang/python-lock", stood, shown(set(), kind="crash", why="TypeError: cannot pickle"))
    assert not ok
    assert "cannot pickle" in why


def test_without_the_finding_in_the_control_nothing_can_be_compared() -> None:
    ok, why = judge(RULE, shown(set(), 2.5), shown(set(), 0.3))
    assert not ok
    assert "did not show the finding again" in why


@needs_sandbox
def test_a_changed_variable_is_tried_as_well(server: ForkServer, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(READS_A_VARIABLE)
    server.run(script, tmp_path / "case")
    case = open_case(tmp_path / "case")
    patch = Patch("env", "smaller", environment={"RATE": "0.1"})
    finding = Finding("F1", "stall/learning-rate-zero", "critical", "zero")
    *_, last = check(Bench(case, time.monotonic() + 200), finding, patch)
    assert isinstance(last, Checked)
    assert last.ok, last.why
    assert environment_words(patch, ["python", "train.py"]) == "env RATE=0.1 python train.py"


READS_A_VARIABLE = """
import os
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(512, 4)
y = (x[:, 0] > 0).long()
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=float(os.environ.get("RATE", "0")))
for step in range(100):
    rows = torch.randint(0, 512, (64,))
    loss = torch.nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_finite_loss_that_is_absurd_is_no_cure_of_a_nan() -> None:
    rule, broken = "nan/zero-division", shown({"nan/zero-division"}, 0.3, "nan", why="the loss is not finite")
    assert judge(rule, broken, shown(set(), 0.3))[0]
    ok, why = judge(rule, broken, shown(set(), 3e12))
    assert not ok
    assert "its loss is 3e+12" in why
