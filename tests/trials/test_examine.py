"""A step that broke is examined: on the spot without a trace, or by a second run in the sandbox, through the real command line."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from watching import needs_sandbox, trainsleuth

pytestmark = needs_sandbox

LOG_OF_ZERO_LATE = """
    import random

    import torch
    from torch import nn

    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    with open("log.txt", "a") as log:
        for step in range(60):
            x = torch.randn(32, 6)
            y = (x[:, 0] > 0).float()
            scale = 1.0 if step < 40 else 200.0 + random.random()
            p = torch.sigmoid(scale * net(x)).squeeze(1)
            entropy = -(p * p.log())
            loss = ((p - y) ** 2).mean() + 0.01 * entropy.mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            log.write(f"{step} {loss.item()}\\n")
"""

CHANGED_IN_PLACE = """
    import torch
    from torch import nn

    torch.manual_seed(0)
    torch.set_num_threads(1)
    encoder, decoder = nn.Linear(4, 8), nn.Linear(8, 4)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
    for step in range(12):
        x = torch.randn(16, 4)
        code = torch.sigmoid(encoder(x))
        if step >= 5:
            code.mul_(0.5)
        loss = (decoder(code) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

SURVIVES = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.norm, self.drop, self.last = nn.Linear(6, 12), nn.BatchNorm1d(12), nn.Dropout(0.3), nn.Linear(12, 3)
            self.calls, self.scale = 0, 1.0

        def forward(self, x):
            self.calls += 1
            print("forward", self.calls)
            h = self.drop(torch.relu(self.norm(self.first(x))))
            return torch.log(torch.softmax(self.scale * self.last(h), dim=1))

    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for step in range(30):
        net.scale = 900.0 if step == 7 else 1.0
        x, y = torch.randn(32, 6), torch.randint(0, 3, (32,))
        loss = nn.functional.nll_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        if torch.isfinite(loss):
            optimizer.step()
        print(step, loss.item(), net.calls, net.norm.running_mean.sum().item(), torch.rand(()).item())
"""

KEPT_BY_THE_TRAINER = """
    import torch
    from torch import nn

    class Trainer:
        def __init__(self):
            torch.manual_seed(0)
            self.net = nn.Linear(6, 3)
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05)
            self.best = torch.tensor(float("inf"))

        def fit(self):
            for self.step in range(20):
                self.x = torch.randn(32, 6) * (900.0 if self.step == 12 else 1.0)
                self.y = torch.randint(0, 3, (32,))
                self.loss = nn.functional.nll_loss(torch.softmax(self.net(self.x), dim=1).log(), self.y)
                assert torch.isfinite(self.loss), "the loss is not finite"
                self.optimizer.zero_grad()
                self.loss.backward()
                self.optimizer.step()

    Trainer().fit()
"""


def run(folder: Path, source: str, *options: str) -> tuple[dict[str, Any], subprocess.CompletedProcess[str]]:
    (folder / "train.py").write_text(textwrap.dedent(source))
    done = trainsleuth("run", "--json", "r.json", "--case", "case", *options, "--", sys.executable, "train.py", cwd=folder,
                       env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip
    return json.loads((folder / "r.json").read_text()), done


def line_of(source: str, text: str) -> int:
    return next(number for number, line in enumerate(textwrap.dedent(source).splitlines(), 1) if text in line)


@pytest.mark.timeout(200)
def test_a_late_nan_of_an_unseeded_program_is_traced_to_its_operation(tmp_path: Path) -> None:
    report, done = run(tmp_path, LOG_OF_ZERO_LATE)
    first = report["findings"][0]
    assert first["rule"] == "nan/log-of-zero", done.stderr
    assert first["where"][0]["line"] == line_of(LOG_OF_ZERO_LATE, "p.log()")
    assert first["where"][0]["around"]
    assert any("sandbox" in line or "replay" in line for line in first["evidence"])
    assert len((tmp_path / "log.txt").read_text().splitlines()) == 60, "the second run writes nothing of its own"


@pytest.mark.timeout(200)
def test_a_bad_loss_that_a_trainer_keeps_in_itself_is_traced_too(tmp_path: Path) -> None:
    report, done = run(tmp_path, KEPT_BY_THE_TRAINER)
    first = report["findings"][0]
    assert first["rule"] == "nan/log-of-zero", done.stderr
    assert first["where"][0]["line"] == line_of(KEPT_BY_THE_TRAINER, ".log()")


@pytest.mark.timeout(200)
def test_a_best_score_that_begins_at_infinity_is_not_why_a_trainer_stopped(tmp_path: Path) -> None:
    stops = 'assert torch.isfinite(self.loss), "the loss is not finite"'
    elsewhere = KEPT_BY_THE_TRAINER.replace("900.0", "1.0").replace(stops, "open('missing') if self.step == 12 else None")
    report, done = run(tmp_path, elsewhere)
    assert [finding["rule"] for finding in report["findings"]] == ["crash/exception"], done.stderr
    facts = [json.loads(line) for file in (tmp_path / "case" / "facts").glob("*.jsonl") for line in file.read_text().splitlines()]
    assert [fact.get("bad_values") or [] for fact in facts if fact["k"] == "crash"] == [[]]


@pytest.mark.timeout(200)
def test_the_line_that_changed_the_tensor_is_named(tmp_path: Path) -> None:
    report, done = run(tmp_path, CHANGED_IN_PLACE)
    first = report["findings"][0]
    assert first["rule"] == "autograd/modified-in-place", done.stderr
    assert first["where"][0]["line"] == line_of(CHANGED_IN_PLACE, "code.mul_(0.5)")
    assert any(where["line"] == line_of(CHANGED_IN_PLACE, "torch.sigmoid") for where in first["where"])
    assert done.returncode == 1


@pytest.mark.timeout(200)
def test_a_replay_on_the_spot_leaves_no_trace(tmp_path: Path) -> None:
    report, done = run(tmp_path, SURVIVES)
    bare = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=100,
                          env={**os.environ, "OMP_NUM_THREADS": "1"}, check=True)  # fmt: skip
    assert done.stdout == bare.stdout
    assert report["verdict"] == "healthy", "it skipped the bad step and went on"
    note = next(finding for finding in report["findings"] if finding["rule"] == "nan/log-of-zero")
    assert note["severity"] == "note"
    assert any("replaying" in line for line in note["evidence"])
    assert note["where"][0]["line"] == line_of(SURVIVES, "torch.log(")


@pytest.mark.timeout(200)
def test_without_an_examination_the_report_says_what_is_missing(tmp_path: Path) -> None:
    report, done = run(tmp_path, CHANGED_IN_PLACE, "--examine", "0")
    assert "running the program again" not in done.stderr
    assert report["verdict"] == "sick"
    missing = {row["rule"]: row["missing"] for row in report["abstained"]}
    assert "prove" in missing["autograd/modified-in-place"]


def test_the_second_run_changes_nothing_of_the_users(tmp_path: Path) -> None:
    run(tmp_path, CHANGED_IN_PLACE, "--examine", "0")
    before = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tmp_path.iterdir() if path.is_file()}
    trainsleuth("prove", "case", "--budget", "60s", cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"})
    after = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tmp_path.iterdir() if path.is_file()}
    assert before == after
    report = json.loads((tmp_path / "case" / "report.json").read_text())
    assert report["findings"][0]["rule"] == "autograd/modified-in-place"
