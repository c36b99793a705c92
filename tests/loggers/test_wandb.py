"""What W&B loses is known exactly while the program runs, and StepLogger loses nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from trainsleuth.readers import wandb_file

PROGRAM = Path(__file__).with_name("losing_program.py")


def stored(folder: Path) -> dict[tuple[str, float], int]:
    """The points of the run's own file that the program gave: their W&B steps."""
    (path,) = folder.glob("wandb/offline-run-*/*.wandb")
    names = {name for name, _, _ in given(folder)}
    points = [fact for fact in wandb_file.read(path) if fact["k"] == "point" and fact["name"] in names]
    found = [((fact["name"], fact["value"]), fact["step"]) for fact in points]
    assert len(dict(found)) == len(found)
    return dict(found)


def given(folder: Path) -> list[tuple[str, float, int | None]]:
    """Every point that the program gave to W&B, in order; each value is given once for a name."""
    calls = json.loads((folder / "given.json").read_text())
    return [(name, value, step) for names, value, step in calls for name in names]


def lost_points(folder: Path) -> Counter[tuple[str, int]]:
    """Name and step of each point that was given and is not in the file. One without a step was overwritten by the next one that is."""
    kept, points = stored(folder), given(folder)
    lost: Counter[tuple[str, int]] = Counter()
    for index, (name, value, step) in enumerate(points):
        if (name, value) not in kept:
            after = (kept[n, v] for n, v, _ in points[index:] if n == name and (n, v) in kept)
            lost[name, next(after) if step is None else step] += 1
    return lost


def told(evidence: list[str]) -> Counter[tuple[str, int]]:
    """The points that a finding lists, read back from its words."""
    found: Counter[tuple[str, int]] = Counter()
    for line in evidence:
        row = re.fullmatch(r"(\S+): (?:lost|overwritten) at steps? (.*)", line)
        for part in row[2].split(", ") if row else ():
            stretch = re.fullmatch(r"(-?\d+)(?:–(-?\d+))?(?: \((?:(twice)|(\d+) times)\))?", part)
            assert row is not None
            assert stretch is not None
            times = 2 if stretch[3] else int(stretch[4] or 1)
            for step in range(int(stretch[1]), int(stretch[2] or stretch[1]) + 1):
                found[row[1], step] += times
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_lost_points_are_exactly_those_that_the_file_lacks(tmp_path: Path, seed: int) -> None:
    command = [sys.executable, "-m", "trainsleuth", "run", "--quiet", "--case", str(tmp_path / "case"), "--", sys.executable,
               str(PROGRAM), str(tmp_path), "plain", str(seed)]  # fmt: skip
    subprocess.run(command, check=False, timeout=200, cwd=tmp_path)
    expected = lost_points(tmp_path)
    assert expected.total() > 20
    facts = [json.loads(line) for path in (tmp_path / "case" / "facts").glob("*.jsonl") for line in path.read_text().splitlines()]
    dropped = [fact for fact in facts if fact["k"] == "dropped"]
    assert Counter((fact["name"], fact["step"]) for fact in dropped) == expected
    assert {fact["at"][0] for fact in dropped} == {str(PROGRAM)}
    report = json.loads((tmp_path / "case" / "report.json").read_text())
    (finding,) = [finding for finding in report["findings"] if finding["rule"] == "logging/points-dropped"]
    assert told(finding["evidence"]) == expected


@pytest.mark.parametrize("seed", range(4))
def test_step_logger_loses_none_in_the_same_program(tmp_path: Path, seed: int) -> None:
    subprocess.run([sys.executable, str(PROGRAM), str(tmp_path), "stepping", str(seed)], check=True, timeout=200)
    assert lost_points(tmp_path) == Counter()
    kept, points = stored(tmp_path), given(tmp_path)
    assert set(kept) == {(name, value) for name, value, _ in points}
    steps = [kept[name, value] for name, value, _ in points]
    assert steps == sorted(steps)


def test_lost_records_are_read_from_the_internal_log(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(PROGRAM), str(tmp_path), "plain", "0"], check=True, timeout=200)
    (path,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    facts = [fact for fact in wandb_file.read(path) if fact["k"] == "dropped"]
    assert facts
    assert all(fact["step"] < fact["current"] for fact in facts)
