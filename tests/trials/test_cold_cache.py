"""The knob `cold-cache`: a trial does not find what an earlier run has left, and the user's cache stays as it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from watching import ForkServer, needs_sandbox, trainsleuth

CACHED = """
import os
import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(400, 12)
if not os.path.exists("cache/labels.pt"):
    os.makedirs("cache", exist_ok=True)
    torch.save((x[:, :3].argmax(1)), "cache/labels.pt")
y = torch.load("cache/labels.pt")
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(120):
    rows = torch.randint(0, 400, (64,))
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
OLD_LABELS = "import torch; torch.save(torch.randint(0, 3, (400,), generator=torch.Generator().manual_seed(5)), 'labels.pt')"


@pytest.fixture
def stale(server: ForkServer, tmp_path: Path) -> Path:
    """A program whose cache is of other data, and its case."""
    work = tmp_path / "work"
    (work / "cache").mkdir(parents=True)
    (work / "train.py").write_text(CACHED)
    (work / "made.py").write_text(OLD_LABELS)
    assert server.run(work / "made.py", tmp_path / "making", cwd=work / "cache").code == 0
    assert server.run(work / "train.py", tmp_path / "case", cwd=work).code == 0
    return work


@needs_sandbox
def test_a_program_learns_better_without_a_cache_of_other_data(stale: Path) -> None:
    before = (stale / "cache" / "labels.pt").read_bytes()
    done = trainsleuth("prove", str(stale.parent / "case"), "--suspect", "cold-cache:cache", cwd=stale)
    report = json.loads((stale.parent / "case" / "report.json").read_text())
    verdicts = [row["verdict"] for row in report["trials"] if row.get("cause") == "knob/cold-cache:cache" and "verdict" in row]
    assert verdicts == ["workaround"], done.stdout + done.stderr
    assert (stale / "cache" / "labels.pt").read_bytes() == before
    assert [path.name for path in (stale / "cache").iterdir()] == ["labels.pt"]


@needs_sandbox
@pytest.mark.parametrize(("knob", "says"), [
    ("cold-cache:nowhere", "nowhere is not there, so no trial can do without it"), ("cold-cache", "must be told a folder or a file"),
])  # fmt: skip
def test_a_cache_that_is_not_there_is_an_error(stale: Path, knob: str, says: str) -> None:
    done = trainsleuth("prove", str(stale.parent / "case"), "--suspect", knob, cwd=stale)
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr
