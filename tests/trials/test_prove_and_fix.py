"""From a sick program to its proof and its verified patch, through the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trainsleuth.trials import sandbox
from watching import ForkServer, trainsleuth

needs_sandbox = pytest.mark.skipif(sandbox.available() is not None, reason=str(sandbox.available()))

SICK = """
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(512, 16)
y = ((x[:, :4] > 0).long() * torch.tensor([1, 2, 4, 8])).sum(1)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
model[0] = nn.Linear(16, 64)
model[2] = nn.Linear(64, 16)
for step in range(80):
    rows = torch.randint(0, 512, (64,))
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")
print(f"loss {loss.item():.4f}")
"""


@pytest.fixture
def sick(server: ForkServer, tmp_path: Path) -> Path:
    """A working folder with a sick program, and its case."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "train.py").write_text(SICK)
    seen = server.run(folder / "train.py", tmp_path / "case")
    assert seen.rules[:1] == ["stall/params-not-in-optimizer"], seen.why()
    (folder / "model.pt").unlink()
    return folder


@needs_sandbox
def test_a_cause_is_proved_its_patch_verified_and_applied(sick: Path) -> None:
    case = str(sick.parent / "case")
    proved = trainsleuth("prove", case, "--json", "proof.json", cwd=sick.parent)
    assert proved.returncode == 1, proved.stderr
    assert "confirmed" in proved.stdout
    assert sorted(path.name for path in sick.iterdir()) == ["train.py"], "a trial wrote into the working folder"
    report = json.loads((sick.parent / "proof.json").read_text())
    cause = report["findings"][0]["causes"][0]
    assert (cause["status"], len(cause["trials"])) == ("confirmed", 3)
    rows = {trial["role"]: trial for trial in report["trials"] if "role" in trial}
    assert rows["control"]["mechanism"] > 0
    assert rows["knob"]["mechanism"] == 0
    assert rows["knob"]["loss"]["last"] < 0.5 * rows["control"]["loss"]["last"]

    fixed = trainsleuth("fix", case, "F1", "--verify", "--apply", cwd=sick.parent)
    assert fixed.returncode == 0, fixed.stderr
    assert "verified: the finding is gone, and the loss ends lower" in fixed.stderr
    assert "known from before" in fixed.stderr, "the control was run again"
    text = (sick / "train.py").read_text()
    assert text.index("model[2] = nn.Linear(64, 16)") < text.index("optimizer = torch.optim.SGD")
    assert "+optimizer = torch.optim.SGD" in fixed.stdout
    stored = json.loads(Path(case, "report.json").read_text())
    assert stored["findings"][0]["remedies"][0]["verified"] is True
    assert Path(case, "backups", "B1", "train.py").read_text() == SICK


def test_a_file_with_changes_that_are_not_committed_is_left_alone_unless_forced(sick: Path) -> None:
    case = str(sick.parent / "case")
    subprocess.run(["git", "init", "-q"], cwd=sick, check=True)
    refused = trainsleuth("fix", case, "F1", "--apply", cwd=sick.parent)
    assert refused.returncode == 2
    assert "not committed" in refused.stderr
    assert (sick / "train.py").read_text() == SICK
    forced = trainsleuth("fix", case, "F1", "--apply", "--force", cwd=sick.parent)
    assert forced.returncode == 0, forced.stderr
    assert (sick / "train.py").read_text() != SICK
    assert Path(case, "backups", "B1", "train.py").read_text() == SICK


def test_a_finding_that_the_case_does_not_have_is_an_error_with_the_list_of_those_it_has(sick: Path) -> None:
    for words in (("prove",), ("fix",)):
        done = trainsleuth(*words, str(sick.parent / "case"), "F9", cwd=sick.parent)
        assert done.returncode == 2
        assert "no finding F9" in done.stderr
        assert "F1 stall/params-not-in-optimizer" in done.stderr


def test_the_diff_alone_changes_nothing(sick: Path) -> None:
    done = trainsleuth("fix", str(sick.parent / "case"), cwd=sick.parent)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("--- a/train.py")
    assert (sick / "train.py").read_text() == SICK


def test_a_budget_that_is_no_time_is_an_error(sick: Path) -> None:
    done = trainsleuth("prove", str(sick.parent / "case"), "--budget", "soon", cwd=sick.parent)
    assert done.returncode == 2
    assert "soon is no length of time" in done.stderr


def test_a_command_line_that_held_a_secret_is_not_run_again(sick: Path) -> None:
    case = sick.parent / "case" / "case.json"
    about = json.loads(case.read_text())
    about["command"] = [sys.executable, "train.py", "--token", "***"]
    case.write_text(json.dumps(about))
    done = trainsleuth("prove", str(case.parent), cwd=sick.parent)
    assert done.returncode == 2
    assert "held a secret" in done.stderr


@needs_sandbox
def test_ctrl_c_ends_the_trials_and_leaves_no_process(sick: Path) -> None:
    mark = f"trainsleuth-interrupted-{os.getpid()}"
    case = sick.parent / "case"
    about = json.loads((case / "case.json").read_text())
    about["command"] = [sys.executable, "-c", "import time; time.sleep(60)", mark]
    (case / "case.json").write_text(json.dumps(about))
    process = subprocess.Popen(
        [sys.executable, "-m", "trainsleuth", "prove", str(case)], cwd=sick.parent, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    )
    until = time.monotonic() + 60
    while not list(case.glob("trials/T*/facts/*.jsonl")) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130, said
    assert b"are kept" in said
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if _has(path, mark)]
    assert left == []


def _has(path: Path, mark: str) -> bool:
    try:
        return mark.encode() in path.read_bytes()
    except OSError:
        return False
