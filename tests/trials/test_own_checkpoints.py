"""A program that goes on from its own checkpoint: trials start as the run did, or from a checkpoint near a late symptom."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from trainsleuth.case.folder import open_case, write_json
from trainsleuth.case.weights_files import weights_in
from trainsleuth.trials.bench import START_UP, Bench
from trainsleuth.trials.trial import digest
from watching import needs_sandbox, trainsleuth

RESUMES = """
import os
import time
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
first = 0
if os.path.exists("out/last.pt"):
    state = torch.load("out/last.pt")
    model.load_state_dict(state["model"])
    first = state["step"]
print("begins at", first)
os.makedirs("out", exist_ok=True)
for step in range(first, 80):
    rows = torch.randint(0, 512, (64,))
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        torch.save({"model": model.state_dict(), "step": step + 1}, "out/last.pt")
"""


@needs_sandbox
def test_trials_do_not_go_on_where_the_run_ended(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(RESUMES)
    (tmp_path / "pretrained.pt").write_bytes(b"there before")
    trainsleuth("run", "--case", "case", "--quiet", "--", sys.executable, "train.py", cwd=tmp_path)
    case = open_case(tmp_path / "case")
    assert case.about["weights_before"] == ["pretrained.pt"]
    done = trainsleuth("prove", "case", "--budget", "3m", cwd=tmp_path)
    report = json.loads((case.folder / "report.json").read_text())
    assert report["findings"][0]["rule"] == "stall/params-not-in-optimizer", done.stdout + done.stderr
    assert report["findings"][0]["causes"][0]["status"] == "confirmed", done.stdout + done.stderr
    assert (case.trials / "T1" / "output.txt").read_text().startswith("begins at 0\n")
    assert (tmp_path / "out" / "last.pt").is_file()


def test_a_late_symptom_is_reached_from_a_checkpoint_that_was_written_before_it(tmp_path: Path) -> None:
    source = RESUMES.replace("range(first, 80)", "range(first, 600)").replace("step % 20 == 19", "step == 499")
    (tmp_path / "train.py").write_text(source.replace("    optimizer.step()\n", "    optimizer.step(); time.sleep(0.01)\n"))
    trainsleuth("run", "--case", "case", "--quiet", "--", sys.executable, "train.py", cwd=tmp_path)
    case = open_case(tmp_path / "case")
    rich = Bench(case, time.monotonic() + 3600, jobs=1)
    poor = Bench(case, time.monotonic() + 4 * (START_UP + 350 * rich.seconds_a_window()), jobs=1)
    assert rich.reach(590) == ""
    assert rich.trial("control", "control").gone == (tmp_path / "out" / "last.pt",)
    told = poor.reach(590)
    assert "the checkpoints that the program wrote until step" in told
    assert poor.windows < 300
    assert poor.trial("control", "control").gone == ()


def test_a_folder_with_too_much_in_it_is_not_searched(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "a.pt").touch()
    assert weights_in(tmp_path) == ["kept/a.pt"]
    for number in range(20_001):
        (tmp_path / f"{number}.txt").touch()
    assert weights_in(tmp_path) is None


def test_a_report_of_ours_is_no_part_of_the_program(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)")
    (tmp_path / "config.json").write_text('{"lr": 0.1}')
    before = digest(tmp_path, tmp_path / "case")
    write_json(tmp_path / "proof.json", {"schema": 1, "case": "case", "findings": []})
    assert digest(tmp_path, tmp_path / "case") == before
    (tmp_path / "config.json").write_text('{"lr": 0.01}')
    assert digest(tmp_path, tmp_path / "case") != before
