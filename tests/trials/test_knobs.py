"""Each knob on a tiny program: it changes its mechanism, and nothing else."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import _trainsleuth_inside
from trainsleuth.trials.knobs import KNOBS
from trainsleuth.trials.measure import measure
from trainsleuth.trials.sandbox import Ended
from trainsleuth.trials.trial import Outcome, Setting, Trial
from watching import ForkServer

INJECT = Path(_trainsleuth_inside.__file__).parent / "inject"
HEAD = """
import torch
from torch import nn
torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(64, 8)
y = (x.sum(1) > 0).long()
"""


Run = Callable[..., tuple[Outcome, str, list[dict[str, Any]]]]


@pytest.fixture
def run(server: ForkServer) -> Run:
    """Run a program with knobs, without the sandbox; its outcome, what it printed, and its facts."""

    def turned(folder: Path, source: str, *settings: Setting) -> tuple[Outcome, str, list[dict[str, Any]]]:
        folder.mkdir()
        script = folder / "program.py"
        script.write_text(HEAD + textwrap.dedent(source))
        knobs = [{"knob": "every-window"}, *({"knob": s.knob, "options": dict(s.options)} for s in settings)]
        seen = server.run(Path(__file__).with_name("turned.py"), folder / "case", [json.dumps(knobs), str(script)], cwd=folder)
        facts = [json.loads(line) for path in seen.folder.glob("facts/*.jsonl") for line in path.read_text().splitlines()]
        assert seen.code == 0, seen.output
        assert [fact for fact in facts if fact["k"] in ("knob_failed", "probe_off")] == []
        trial = Trial("knob", "knob", settings, 0, "")
        return measure(trial, seen.folder, Ended("exit", seen.code, 1.0)), seen.output, facts

    return turned


def line_of(source: str, text: str) -> int:
    return next(n for n, line in enumerate((HEAD + textwrap.dedent(source)).splitlines(), 1) if text in line)


def at(folder: Path, source: str, text: str) -> list[list[Any]]:
    return [[str(folder / "program.py"), line_of(source, text)]]


FROZEN = """
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
head = nn.Linear(2, 2)
for p in model.parameters():
    p.requires_grad = False
head.weight.requires_grad_(False)
opt = torch.optim.SGD([p for p in [*model.parameters(), *head.parameters()] if p.requires_grad], lr=0.5)
both = nn.Sequential(model, head)
for step in range(30):
    loss = nn.functional.cross_entropy(both(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
held = sum(len(group["params"]) for group in opt.param_groups)
print(head.weight.requires_grad, all(p.requires_grad for p in model.parameters()), held)
"""


def test_unfreeze_undoes_the_named_line_and_no_other(tmp_path: Path, run: Run) -> None:
    where = at(tmp_path / "a", FROZEN, "p.requires_grad = False")
    outcome, printed, _ = run(tmp_path / "a", FROZEN, Setting("unfreeze", {"at": where}))
    assert printed.split() == ["False", "True", "5"]
    assert outcome.kind == "healthy"
    assert outcome.mechanism["stall/params-frozen"] == pytest.approx(180 / 184, abs=0.01)


def test_unfreeze_without_a_line_undoes_all_that_the_user_froze_also_at_birth(tmp_path: Path, run: Run) -> None:
    born_frozen = "head = nn.Linear(2, 2)\nhead.bias = nn.Parameter(torch.zeros(2), requires_grad=False)"
    source = FROZEN.replace("head = nn.Linear(2, 2)", born_frozen)
    _, printed, _ = run(tmp_path / "a", source, Setting("unfreeze", {"at": []}))
    assert printed.split() == ["True", "True", "6"]


def test_a_knob_that_finds_nothing_to_change_is_not_applicable(tmp_path: Path, run: Run) -> None:
    outcome, _, _ = run(tmp_path / "a", FROZEN, Setting("unfreeze", {"at": [["/elsewhere.py", 1]]}))
    assert outcome.kind == "not applicable"
    assert not outcome.acted


ORPHANS = """
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(model[0].parameters(), lr=0.05)
plan = torch.optim.lr_scheduler.OneCycleLR(opt, 0.05, total_steps=40)
before = model[2].weight.detach().clone()
for step in range(30):
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad(); loss.backward(); opt.step(); plan.step()
print(bool((model[2].weight != before).any()), len(opt.param_groups))
"""


def test_optimizer_owns_all_adopts_orphans_and_schedulers_go_on(tmp_path: Path, run: Run) -> None:
    control, printed, _ = run(tmp_path / "control", ORPHANS)
    assert printed.split() == ["False", "1"]
    assert control.mechanism["stall/params-not-in-optimizer"] == 34
    turned, printed, _ = run(tmp_path / "turned", ORPHANS, Setting("optimizer-owns-all"))
    assert printed.split() == ["True", "1"]
    assert turned.mechanism["stall/params-not-in-optimizer"] == 0


DISCARDED = """
model = nn.Linear(8, 2)
opt = torch.optim.SGD(model.parameters(), lr=0.5)
used = []
opt.register_step_pre_hook(lambda *_: used.append(model.bias.grad.clone()))
for step in range(32):
    {clear}
    loss = nn.functional.cross_entropy(model(x[step % 4 :: 4]), y[step % 4 :: 4]) / 4
    loss.backward()
    if (step + 1) % 4 == 0:
        opt.step()
"""


@pytest.mark.parametrize(
    ("clear", "by_hand"),
    [
        ("opt.zero_grad()", False),
        ("model.zero_grad()", False),
        ("for p in model.parameters(): p.grad = None", True),
        ("if (step + 1) % 4 == 0: opt.zero_grad()", False),
    ],
)
def test_clear_only_after_step_keeps_every_micro_batch_and_still_clears(
    tmp_path: Path, run: Run, clear: str, by_hand: bool
) -> None:
    source = DISCARDED.format(clear=clear) + "\nprint(float(model.bias.grad.abs().sum()) < 1.0)\n"
    where = at(tmp_path / "turned", source, clear)
    outcome, _, facts = run(tmp_path / "turned", source, Setting("clear-only-after-step", {"at": where, "by_hand": by_hand}))
    rows = [fact for fact in facts if fact["k"] == "windows"]
    assert sum(row["delivered"] for row in rows) == 32
    assert outcome.mechanism["stall/accumulated-gradients-discarded"] == 0
    assert sum(row["stale"] for row in rows) == 0
    assert outcome.acted


ASLEEP = """
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2)).eval()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
with torch.no_grad():
    assert not model.training and not model[1].training
print(model[1].num_batches_tracked.item())
"""


def test_train_mode_wakes_the_model_for_training_forwards_only(tmp_path: Path, run: Run) -> None:
    control, printed, _ = run(tmp_path / "control", ASLEEP)
    assert printed.split() == ["0"]
    assert control.mechanism["mode/eval-during-training"] == 2
    turned, printed, _ = run(tmp_path / "turned", ASLEEP, Setting("train-mode"))
    assert printed.split() == ["20"]
    assert turned.mechanism["mode/eval-during-training"] == 0


SEEDED = """
import random
import numpy as np
random.seed(1); np.random.seed(2); torch.manual_seed(3)
print(random.random(), np.random.rand(), np.random.default_rng(4).random(), torch.rand(1).item(), x[0, 0].item())
"""


def test_another_seed_changes_every_source_of_chance_and_nothing_changes_none(tmp_path: Path, run: Run) -> None:
    _, plain, _ = run(tmp_path / "plain", SEEDED)
    _, same, _ = run(tmp_path / "same", SEEDED, Setting("nothing"))
    _, other, _ = run(tmp_path / "other", SEEDED, Setting("seed", {"offset": 1000}))
    assert same == plain
    assert all(one != another for one, another in zip(plain.split(), other.split(), strict=True))


def test_every_knob_has_an_actuator_whose_page_says_what_it_does() -> None:
    for name in KNOBS:
        page = (INJECT.parent / "knobs" / f"{name.replace('-', '_')}.py").read_text()
        for heading in ("Changes ", "Mechanism ", "Not applicable when"):
            assert heading in page, f"{name}: {heading}"
