"""What W&B loses is known exactly while the program runs, and StepLogger loses nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from trainsleuth.readers import wandb_file

PROGRAM = Path(__file__).with_name("losing_program.py")


def stored(folder: Path) -> Counter[tuple[str, float]]:
    (path,) = folder.glob("wandb/offline-run-*/*.wandb")
    return Counter((fact["name"], fact["value"]) for fact in wandb_file.read(path) if fact["k"] == "point")


@pytest.mark.parametrize("seed", range(4))
def test_the_lost_points_are_exactly_those_that_the_file_lacks(tmp_path: Path, seed: int) -> None:
    command = [sys.executable, "-m", "trainsleuth", "run", "--quiet", "--case", str(tmp_path / "case"), "--", sys.executable,
               str(PROGRAM), str(tmp_path), "plain", str(seed)]  # fmt: skip
    subprocess.run(command, check=False, timeout=200, cwd=tmp_path)
    facts = [json.loads(line) for path in (tmp_path / "case" / "facts").glob("*.jsonl") for line in path.read_text().splitlines()]
    lost = Counter(fact["name"] for fact in facts if fact["k"] == "dropped")
    kept = Counter(name for name, _ in stored(tmp_path).elements())
    given: Counter[str] = Counter()
    for fact in facts:
        if fact["k"] == "dropped":
            assert fact["at"][0] == str(PROGRAM)
    given = _given(seed)
    assert lost == Counter({name: given[name] - kept[name] for name in given if given[name] > kept[name]})
    assert sum(lost.values()) > 20


def _given(seed: int) -> Counter[str]:
    import random

    chance = random.Random(seed)
    found: Counter[str] = Counter()
    for _ in range(200):
        found[f"m{chance.randrange(5)}"] += 1
        found["n.x"] += 1
        chance.choice((None, None, 0, 0, 0))
        chance.choice((None, None, None, True, False))
    return found


def test_step_logger_loses_none(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(PROGRAM), str(tmp_path), "stepping", "0"], check=True, timeout=200)
    kept = stored(tmp_path)
    assert all(kept["m", float(number)] == kept["x", float(number)] == 1 for number in range(200))


def test_lost_records_are_read_from_the_internal_log(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(PROGRAM), str(tmp_path), "plain", "0"], check=True, timeout=200)
    (path,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    facts = [fact for fact in wandb_file.read(path) if fact["k"] == "dropped"]
    assert facts
    assert all(fact["step"] < fact["current"] for fact in facts)
