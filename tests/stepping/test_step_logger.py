"""StepLogger with a real CSV file and real event files: one counter, separate axes, NaN visible, resume without overlap, rank 0 only."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainsleuth import StepLogger
from trainsleuth.readers import tensorboard


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def points(folder: Path) -> Iterator[tuple[str, int, float]]:
    """What TensorBoard shows: a session start in a later file purges what lies at or beyond its step."""
    found: list[tuple[str, int, float]] = []
    for path in sorted(folder.glob("*tfevents*")):
        for fact in tensorboard.read(path):
            if fact["k"] == "points":
                if fact["run"]:
                    found = [point for point in found if point[1] < fact["steps"][0] or point[0] != fact["name"]]
                found += [(fact["name"], step, value) for step, value in zip(fact["steps"], fact["values"])]
    return iter(found)


def test_steps_grow_over_epochs_and_each_axis_counts_for_itself(tmp_path: Path) -> None:
    with StepLogger(csv=tmp_path / "log.csv") as log:
        for _ in range(3):
            for _ in range(4):
                log.step({"loss": 1.0})
            log.validation({"val/accuracy": 0.5})
            log.epoch({"epoch_loss": 2.0})
    found = rows(tmp_path / "log.csv")
    assert [row["step"] for row in found if row["loss"]] == [str(step) for step in range(12)]
    assert [row["step"] for row in found if row["val/accuracy"]] == ["3", "7", "11"]
    assert [row["epoch"] for row in found if row["epoch_loss"]] == ["0", "1", "2"]


def test_a_step_that_would_go_back_is_numbered_on_and_said_once(tmp_path: Path) -> None:
    log = StepLogger(csv=tmp_path / "log.csv")
    log.step({"loss": 1.0}, at=10)
    with pytest.warns(UserWarning, match="do not go back"):
        log.step({"loss": 2.0}, at=3)
    log.step({"loss": 3.0}, at=4)
    log.close()
    assert [row["step"] for row in rows(tmp_path / "log.csv")] == ["10", "11", "12"]


def test_nan_is_kept_and_counted_beside(tmp_path: Path) -> None:
    with StepLogger(csv=tmp_path / "log.csv") as log:
        for value in (1.0, math.nan, math.inf, 2.0):
            log.step({"loss": value})
    found = rows(tmp_path / "log.csv")
    assert [row["loss"] for row in found] == ["1.0", "nan", "inf", "2.0"]
    assert [row["not_finite/loss"] for row in found] == ["", "1.0", "2.0", "2.0"]


def test_a_name_belongs_to_one_axis(tmp_path: Path) -> None:
    log = StepLogger(csv=tmp_path / "log.csv")
    log.step({"loss": 1.0})
    with pytest.warns(UserWarning, match="drawn over step"):
        log.epoch({"loss": 2.0})
    log.close()
    assert rows(tmp_path / "log.csv")[-1]["epoch/loss"] == "2.0"


def test_a_resumed_run_leaves_no_overlap(tmp_path: Path) -> None:
    """Thirty steps, a checkpoint after twenty, a crash; then the same program goes on to forty."""
    first = StepLogger(csv=tmp_path / "log.csv", tensorboard=tmp_path / "events")
    for step in range(30):
        if step == 20:
            checkpoint = first.state_dict()
        first.step({"loss": float(step)})
    first.close()

    second = StepLogger(csv=tmp_path / "log.csv", tensorboard=tmp_path / "events")
    second.load_state_dict(checkpoint)
    for step in range(20, 40):
        second.step({"loss": float(step)})
    second.close()

    assert [float(row["loss"]) for row in rows(tmp_path / "log.csv")] == [float(step) for step in range(40)]
    assert list(points(tmp_path / "events")) == [("loss", step, float(step)) for step in range(40)]


def test_only_rank_zero_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    with StepLogger(csv=tmp_path / "log.csv") as log:
        log.step({"loss": 1.0})
    assert log.global_step == 1
    assert not (tmp_path / "log.csv").exists()
