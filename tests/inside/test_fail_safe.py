"""Whatever breaks inside us, the training ends as without us, and the case says what was switched off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from side_by_side import both_ways
from trainsleuth.case.folder import create_case, open_case
from trainsleuth.case.run_chart import RunChart
from trainsleuth.supervise.session import finish

HERE = Path(__file__).parent
NAMES = (
    "environment", "seeds", "freezing", "compiling", "optimizers", "autograd", "modules", "kept_states", "grad_modes", "losses",
    "scalers", "precision", "schedulers", "stored_samples", "loaders", "loggers", "checkpoints", "checkpointing", "functions", "threads",
    "collectives",
)  # fmt: skip


class Trainer:
    """Trains in forks of one process that has torch loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "broken_probes_program.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.plain = self.train(None)[0]

    def train(self, broken: str | None, most_bytes: int = 0, facts_is_a_file: bool = False) -> tuple[str, dict[str, Any]]:
        """What the training prints with this probe broken (None: without us), and the report."""
        self._count += 1
        case = create_case(["python", "train.py"], self.folder, self.folder / str(self._count))
        if facts_is_a_file:
            case.facts.rmdir()
            case.facts.write_text("")
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"case": str(case.folder), "break": broken, "most_bytes": most_bytes}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert answer["code"] == 0
        return answer["output"], finish(case, RunChart(case.facts), {"kind": "ok", "code": 0})

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=20)


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainer]:
    made = Trainer(tmp_path_factory.mktemp("trainer"))
    yield made
    made.close()


def test_all_probes_are_named_here() -> None:
    listing = "from _trainsleuth_inside import arrival; print(*(name for name, _ in arrival.PROBES))"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, timeout=60, check=True)
    assert tuple(done.stdout.split()) == NAMES


def test_with_all_probes_whole_none_is_switched_off(trainer: Trainer) -> None:
    output, report = trainer.train("")
    assert output == trainer.plain
    assert output.count("0x") == 45
    assert report["probes_off"] == []
    assert report["verdict"] == "healthy"


@pytest.mark.parametrize("name", [*NAMES, "ending"])
def test_a_broken_probe_harms_nothing_and_is_named(trainer: Trainer, name: str) -> None:
    output, report = trainer.train(name)
    assert output == trainer.plain
    assert [row["probe"] for row in report["probes_off"]] == [name]
    assert "broken on purpose" in report["probes_off"][0]["why"]


def test_all_probes_broken_at_once_through_the_command_line(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n"
        "model = torch.nn.Linear(3, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "torch.manual_seed(0)\n"
        "for _ in range(4):\n"
        "    loss = torch.nn.functional.mse_loss(model(torch.ones(2, 3)), torch.zeros(2, 1))\n"
        "    loss.backward(); optimizer.step(); optimizer.zero_grad()\n"
        "print(torch.rand(1), 'trained')\n"
        "raise SystemExit(3)\n"
    )
    environment = {**os.environ, "TRAINSLEUTH_BREAK": ",".join(NAMES)}
    plain, watched, report = both_ways([sys.executable, str(script)], tmp_path, environment=environment)
    assert (watched.stdout, watched.stderr, watched.returncode) == (plain.stdout, plain.stderr, 3)
    assert {"optimizers", "autograd", "modules", "losses", "seeds"} <= {row["probe"] for row in report["probes_off"]}


@pytest.mark.parametrize("most_bytes", [1, 3000, 20_000])
def test_a_full_disk_ends_the_writing_and_not_the_training(trainer: Trainer, most_bytes: int) -> None:
    output, report = trainer.train("", most_bytes=most_bytes)
    assert output == trainer.plain
    assert report["verdict"] in ("unsure", "healthy")
    assert open_case(report["folder"]).about["exit"] == {"kind": "ok", "code": 0}


def test_a_case_that_cannot_be_written_to_harms_nothing(trainer: Trainer) -> None:
    output, report = trainer.train("", facts_is_a_file=True)
    assert output == trainer.plain
    assert report["verdict"] == "unsure"
