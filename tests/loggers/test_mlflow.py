"""StepLogger in front of a real MLflow file store: what it has already is not given again after a resume."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import mlflow
import pytest

from trainsleuth import StepLogger
from trainsleuth.readers import mlflow_store


def test_a_resumed_run_leaves_no_overlap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    with mlflow.start_run() as run:
        first = StepLogger(mlflow=True)
        for step in range(6):
            if step == 4:
                checkpoint = first.state_dict()
            first.step({"train/loss": float(step)})
    second = StepLogger(mlflow=run.info.run_id)
    second.load_state_dict(checkpoint)
    for step in range(4, 9):
        second.step({"train/loss": float(step)})
    (path,) = tmp_path.glob("mlruns/*/*/metrics/train/loss")
    points = [pair for fact in mlflow_store.read(path) if fact["k"] == "points" for pair in zip(fact["steps"], fact["values"])]
    assert points == [(step, float(step)) for step in range(9)]


def test_steps_that_go_back_are_found_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    program = Path(__file__).with_name("resetting_program.py")
    command = [sys.executable, "-m", "trainsleuth", "run", "--quiet", "--case", str(tmp_path / "case"), "--json", str(tmp_path / "report.json"),
               "--", sys.executable, str(program), (tmp_path / "mlruns").as_uri()]  # fmt: skip
    subprocess.run(command, check=False, timeout=200, cwd=tmp_path)
    (finding,) = json.loads((tmp_path / "report.json").read_text())["findings"]
    assert finding["rule"] == "logging/step-not-increasing"
    assert finding["where"][0]["code"] == 'mlflow.log_metric("loss", 1 / (1 + batch), step=batch)'
    assert not any("epoch_loss" in line for line in finding["evidence"])
