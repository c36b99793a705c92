"""A case can be read whatever happened to those who wrote it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from _trainsleuth_inside import facts as facts_module
from _trainsleuth_inside.facts import FactWriter
from trainsleuth.case.beats import read_beats
from trainsleuth.case.folder import Case, CaseError, create_case, open_case
from trainsleuth.case.run_chart import RunChart
from trainsleuth.report.stored import load_report
from trainsleuth.rules.arbiter import diagnose
from watching import trainsleuth

HERE = Path(__file__).parent
LOSS = {"at": ["/x/train.py", 7, "main"], "n": 1, "mean": 1.0, "least": 1.0, "most": 1.0, "last": 1.0, "not_finite": 0}


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return create_case(["python", "train.py"], tmp_path, tmp_path / "case")


def read(case: Case) -> RunChart:
    """Open the case anew, read and judge it."""
    chart = RunChart(open_case(case.folder).facts)
    chart.refresh()
    diagnose(chart)
    load_report(case)
    return chart


def write_losses(case: Case, count: int) -> Path:
    writer = FactWriter(str(case.facts), lambda: {"pid": os.getpid()})
    for step in range(count):
        writer.write("loss", **LOSS, to=step + 1, window=step)
    (file,) = case.facts.iterdir()
    return file


# -- killed ------------------------------------------------------------------------------------------------------------


def test_a_writer_killed_at_fifty_random_moments_leaves_a_case_that_reads(tmp_path: Path) -> None:
    chance = random.Random(11)
    for number in range(50):
        case = create_case(["python", "train.py"], tmp_path, tmp_path / str(number))
        writer = subprocess.Popen([sys.executable, str(HERE / "writing_program.py"), str(case.facts)], stdout=subprocess.PIPE)
        if number % 10:
            assert writer.stdout is not None
            writer.stdout.readline()
        time.sleep(chance.random() * 0.03)
        writer.kill()
        writer.communicate(timeout=20)
        chart = read(case)
        assert chart.unreadable == 0
        for process in chart.processes.values():
            curve = next(iter(process.losses.values()), None)
            assert curve is None or curve.count == max(curve.points[-1].to, curve.count)


@pytest.mark.parametrize("victim", ["program", "supervisor"])
def test_a_run_is_killed_while_it_trains(tmp_path: Path, victim: str) -> None:
    """Of the program: the run ends by the same signal. Of the supervisor: the program goes on, and `diagnose` judges."""
    run = subprocess.Popen(
        [sys.executable, "-m", "trainsleuth", "run", "--quiet", "--case", "case", "--", sys.executable, str(HERE / "killed_program.py")],
        cwd=tmp_path, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert run.stdout is not None
    assert run.stdout.readline() == "training\n"
    time.sleep(0.6)
    program = int(json.loads((tmp_path / "case" / "case.json").read_text())["pid"])
    if victim == "program":
        os.kill(program, signal.SIGKILL)
        assert run.wait(timeout=60) == -signal.SIGKILL
        report = load_report(open_case(tmp_path / "case"))
        assert report["exit"] == {"kind": "killed", "code": 137, "signal": "SIGKILL"}
    else:
        run.kill()
        run.wait(timeout=60)
        before = read(open_case(tmp_path / "case")).facts
        time.sleep(0.8)
        os.kill(program, 0)
        assert read(open_case(tmp_path / "case")).facts > before
        os.kill(program, signal.SIGKILL)
    chart = read(open_case(tmp_path / "case"))
    assert chart.unreadable == 0
    assert chart.training()[0].windows > 0
    assert read_beats(tmp_path / "case" / "beats")[0].backwards > 0
    judged = trainsleuth("diagnose", "case", "--json", "-", cwd=tmp_path)
    assert judged.returncode in (0, 1), judged.stderr
    assert json.loads(judged.stdout)["verdict"] != "unsure"
    assert trainsleuth("report", "case", cwd=tmp_path).returncode in (0, 1)


# -- damaged -----------------------------------------------------------------------------------------------------------


def test_a_torn_tail_is_left_for_later(case: Case) -> None:
    file = write_losses(case, 5)
    whole = file.read_bytes()
    file.write_bytes(whole[:-10])
    chart = RunChart(case.facts)
    chart.refresh()
    assert chart.processes[file.stem].backwards == 4
    assert chart.unreadable == 0
    file.write_bytes(whole)
    assert chart.refresh() == 1
    assert chart.processes[file.stem].backwards == 5


def test_every_length_of_a_file_reads(case: Case) -> None:
    file = write_losses(case, 2)
    whole = file.read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        assert read(case).unreadable == 0


@pytest.mark.parametrize(
    "garbage",
    [b"\xff\xfe\x00\n", b"{\n", b"null\n", b"[1]\n", b'{"k": 3}\n', b'{"k": "loss"}\n', b"[" * 100_000 + b"\n", b"\0" * 50 + b"\n",
     b'{"k": "windows", "opt": {}, "to": []}\n', b'{"k": "params", "rows": [[1, 2]]}\n', b'{"k": "unheard of", "x": 1}\n', b"\n",
     b'{"k": "loss_call", "fn": "cross_entropy", "at": null}\n'],
)  # fmt: skip
def test_garbage_between_the_facts_is_passed_over(case: Case, garbage: bytes) -> None:
    file = write_losses(case, 3)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:2], garbage, *lines[2:]]))
    assert read(case).processes[file.stem].backwards == 3


def test_numbers_that_are_not_finite_come_back(case: Case) -> None:
    writer = FactWriter(str(case.facts), lambda: {})
    writer.write("loss", **{**LOSS, "last": float("nan"), "most": float("inf"), "not_finite": 1, "n": 1}, to=2)
    (process,) = read(case).processes.values()
    (curve,) = process.losses.values()
    assert (curve.not_finite, curve.most) == (1, float("inf"))
    assert curve.last != curve.last


# -- other versions, half a description --------------------------------------------------------------------------------


def test_a_case_of_a_newer_version_is_refused_in_one_sentence(case: Case) -> None:
    case.update(schema=99)
    for command in ("diagnose", "report", "prove", "fix"):
        done = trainsleuth(command, str(case.folder), cwd=case.folder.parent)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.count("\n") == 1
        assert "newer TrainSleuth" in done.stderr


@pytest.mark.parametrize("text", ["", '{"schema": 1, "comm', "[]", "{}", '{"schema": "1"}', "\0\0\0"])
def test_half_a_description_is_a_sentence_not_a_traceback(case: Case, text: str) -> None:
    (case.folder / "case.json").write_text(text)
    with pytest.raises(CaseError, match=r"case\.json"):
        open_case(case.folder)


def test_a_folder_that_is_no_case(tmp_path: Path) -> None:
    done = trainsleuth("diagnose", str(tmp_path), cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "is no case folder" in done.stderr


# -- while it is written -----------------------------------------------------------------------------------------------


def test_reading_while_it_is_written_misses_nothing(case: Case) -> None:
    writer = FactWriter(str(case.facts), lambda: {})
    chart = RunChart(case.facts)
    total = 3000

    def write() -> None:
        for step in range(total):
            writer.write("loss", **LOSS, to=step + 1, window=step)

    thread = threading.Thread(target=write)
    thread.start()
    while thread.is_alive():
        chart.refresh()
    thread.join()
    chart.refresh()
    (process,) = chart.processes.values()
    assert (process.backwards, chart.unreadable) == (total, 0)


# -- a day of training -------------------------------------------------------------------------------------------------


class Clock:
    """Time that passes when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


DAY, STEPS_A_SECOND = 86_400, 2000


def test_a_day_at_two_thousand_steps_a_second_stays_below_200_mb(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real watch, optimizer, model and loss; only the clock is false, and it leaps ever further.

    A leap stands for the steps in it: they would be summed into the same rows, since the intervals at which rows are written
    grow with time as well, and are longer than a leap.
    """
    import torch

    from _trainsleuth_inside import governor, watch
    from _trainsleuth_inside.heartbeat import Heartbeat
    from _trainsleuth_inside.models import ModelRecord
    from _trainsleuth_inside.movement import Snapshot
    from _trainsleuth_inside.windows import Backward, OptimizerRecord

    clock = Clock()
    for module in (governor, watch):
        monkeypatch.setattr(module.time, "perf_counter", clock)
    model = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(8)])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model(torch.randn(2, 4)).sum().backward()
    watching = watch.Watch(torch, FactWriter(str(case.facts), lambda: {"world": None}), Heartbeat(str(case.beats)), 0.01)
    record = watching.optimizers[1] = OptimizerRecord("o1", optimizer, ("/x/train.py", 3, "main"), watching.parameters.number)
    called = watching.models[1] = ModelRecord("m1", model)
    watching.facts.write("optimizer", id="o1", kind="Adam", at=None, groups=[], params=[])
    loss = torch.tensor(0.693147)
    place = ("/x/train.py", 17, "train_one_epoch")
    began, looks = clock.now, 0
    while clock.now < began + DAY:
        elapsed = clock.now - began
        leap = max(1 / STEPS_A_SECOND, elapsed / 2500)
        clock.now += leap
        steps = max(1, round(leap * STEPS_A_SECOND))
        record.after_backward(Backward(place))
        watching.backward_ended(place, loss)
        called.count((True, True, "d1"))
        sampled = record.sampling
        snapshot = Snapshot(watching, optimizer) if sampled else None
        record.before_step()
        record.windows += steps - 1
        record.after_step()
        if snapshot is not None:
            looks += 1
            snapshot.compare(record)
            numbers = {str(number): 0.123456 for number in range(20)}
            watching.facts.write("loss_call", fn="focal", at=place, settings={}, numbers=numbers, histogram=[0] * 64)
            watching.numbers.paid(60e-6, record.windows, 1 / STEPS_A_SECOND)
        watching.window_closed(record)
    size = sum(path.stat().st_size for path in case.folder.rglob("*") if path.is_file())
    assert looks > 100
    assert size < 200e6, f"{size / 1e6:.1f} MB"
    assert size < 1.1 * facts_module.ROOM
    (process,) = read(case).processes.values()
    assert process.windows > DAY * STEPS_A_SECOND * 0.9
    (curve,) = process.losses.values()
    assert curve.count > 10_000


def test_detail_without_end_is_thinned_and_the_curve_goes_on(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of large tensors, looked at often: detail gets rarer, the loss is written to the last step, and the cap holds."""
    monkeypatch.setattr(facts_module, "ROOM", 4 << 20)
    monkeypatch.setattr(facts_module, "LEAST_ROOM", 1 << 10)
    writer = FactWriter(str(case.facts), lambda: {"world": None})
    rows = [[number, 1, 1, 1, 0.123456, 0.123456, 0.123456, 1.0] for number in range(500)]
    for step in range(1, 1501):
        writer.write("params", opt="o1", window=step, rows=rows)
        writer.write("loss", **LOSS, to=step, window=step)
    writer.write("crash", kind="ValueError", message="the end", frames=[])
    (file,) = case.facts.iterdir()
    assert file.stat().st_size < 4 << 20
    found = [json.loads(line) for line in file.read_text().splitlines()]
    looked = [fact["window"] for fact in found if fact["k"] == "params"]
    assert looked[:20] == list(range(1, 21))
    assert max(looked) > 1000
    assert [fact["to"] for fact in found if fact["k"] == "loss"] == list(range(1, 1501))
    assert found[-1]["k"] == "crash"


def test_a_thousand_ranks_share_the_room(case: Case) -> None:
    header: dict[str, Any] = {"world": 64}
    writer = FactWriter(str(case.facts), lambda: header)
    text = "x" * 100_000
    for _ in range(80):
        writer.write("loss", at=text)
    (file,) = case.facts.iterdir()
    assert file.stat().st_size < 3 << 20
