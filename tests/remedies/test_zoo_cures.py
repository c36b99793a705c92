"""The remedy of a zoo program's own finding: the patched program runs, and the rule no longer fires.

Only programs that take a moment are here, and every second one is for `make test-all`; `make zoo-fix` cures all, and compares before and after.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from trainsleuth.remedies import candidates
from trainsleuth.report.json_report import finding_from_json
from watching import ZOO, ForkServer

PROGRAMS = [
    "stall/double-softmax", "stall/wrong-softmax-axis--probs", "stall/no-gradient--decorator", "stall/no-gradient--numpy",
    "stall/optimizer-never-steps--condition", "stall/gradients-never-cleared--parentheses", "stall/learning-rate-zero--groups",
    "stall/unregistered-modules--tensor", "stall/shape-broadcast--by-hand", "stall/vanishing-gradient", "stall/scaler-skips-steps",
    "stall/inputs-and-targets-misaligned", "schedule/decays-to-zero-early", "schedule/warmup-never-ends", "schedule/step-order",
    "schedule/reset-on-resume", "mode/train-during-validation", "data/labels-one-hot", "data/labels-constant--max-values",
    "data/labels-out-of-range--mask-255", "data/not-shuffled", "data/not-normalised", "data/labels-off-by-one",
]  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if number % 2 else ()) for number, name in enumerate(PROGRAMS)]
)
def test_the_patched_program_runs_and_the_rule_is_silent(name: str, server: ForkServer, tmp_path: Path) -> None:
    sick = tmp_path / "sick.py"
    sick.write_bytes((ZOO / name / "sick.py").read_bytes())
    rule = name.partition("--")[0]
    seen = server.run(sick, tmp_path / "before")
    row = next((row for row in seen.findings if row["rule"] == rule), None)
    assert row is not None, seen.why()
    finding = finding_from_json(row)
    for place in finding.where:
        place.file = str(tmp_path / place.file)
    patch = candidates(finding)[0]
    assert patch.kind == "patch", patch.summary
    sick.write_bytes(patch.files[sick.resolve()])
    cured = server.run(sick, tmp_path / "after")
    assert cured.code == 0, cured.output[-2000:] + patch.diff()
    assert rule not in cured.rules, cured.why() + patch.diff()
