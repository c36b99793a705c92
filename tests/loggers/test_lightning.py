"""Report 003's case: the profiler's points are lost beside a plain WandbLogger, and all there behind a SteadyLogger."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from trainsleuth.readers import wandb_file

PROGRAM = Path(__file__).with_name("report_003_program.py")


@pytest.mark.parametrize(("how", "kept"), [("plain", False), ("steady", True)])
def test_the_profilers_points(how: str, kept: bool, tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(PROGRAM), str(tmp_path), how], check=True, timeout=250, cwd=tmp_path, capture_output=True)
    (path,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    names = [fact["name"] for fact in wandb_file.read(path) if fact["k"] == "point"]
    lost = [fact for fact in wandb_file.read(path) if fact["k"] == "dropped"]
    assert names.count("train_loss") == 24
    assert names.count("val_loss") == 3
    assert (names.count("profile/seconds") == 24 and names.count("profile/epoch") == 3) == kept
    assert bool(lost) != kept
