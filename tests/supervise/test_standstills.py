"""Standstills: the right cause and line, from outside; nothing said of a program that is slow; nothing left behind."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from watching import ZOO

sys.path.insert(0, str(ZOO))
from check import Specimen, judge, specimens

TRAINSLEUTH = [sys.executable, "-m", "trainsleuth"]
LIMIT = 170
STANDING = (
    "hang/openmp-thread-limit sick", "hang/openmp-after-fork--backward sick", "hang/dataloader-worker--lock sick",
    "hang/fork-with-live-threads sick", "hang/gil-held-by-native-code sick", "ranks/collective-missing sick",
    "ranks/uneven-batches--without-loader sick",
)  # fmt: skip
QUIET = ("alive/pause_between_epochs", "alive/one_big_eigh", "ranks/healthy_uneven_inputs_join")
NOT_DUMPABLE = """
import ctypes, runpy, sys
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
LATE = """
import queue, threading, torch
torch.set_num_threads(1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
ready = queue.Queue()
def feed(): ready.put(1)
for step in range(6):
    if step == 4:
        threading.Timer(14, feed).start()
        ready.get()
    optimizer.zero_grad()
    model(torch.ones(2, 4)).pow(2).mean().backward()
    optimizer.step()
print("done")
"""


def named(*names: str) -> list[Specimen]:
    known = {specimen.name: specimen for specimen in specimens([])}
    return [known[name] for name in names]


def left_behind(case: Path) -> list[str]:
    """Processes that still carry the environment of this case."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if f"TRAINSLEUTH_CASE={case}".encode() in (folder / "environ").read_bytes():
                    found.append((folder / "cmdline").read_text(encoding="utf-8", errors="replace").replace("\0", " "))
            except OSError:
                continue
    return found


def run_of(script: Path, folder: Path, *options: str, **how: Any) -> tuple[dict[str, Any], int]:
    command = [*TRAINSLEUTH, "run", "--case", str(folder / "case"), "--quiet", "--json", str(folder / "report.json"), *options,
               "--", sys.executable, *(str(word) for word in how.pop("words", [script]))]  # fmt: skip
    with open(folder / "printed.txt", "wb") as printed:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, timeout=LIMIT, check=False, **how
        )
    return json.loads((folder / "report.json").read_text(encoding="utf-8")), done.returncode


@pytest.mark.timeout(200)
@pytest.mark.parametrize("specimen", named(*STANDING), ids=lambda specimen: specimen.name.replace(" ", "-"))
def test_names_cause_and_line_and_ends_the_run(specimen: Specimen, tmp_path: Path) -> None:
    report, _ = run_of(specimen.script, tmp_path, "--hang-after", "5", "--on-hang", "kill")
    passed, words = judge(specimen, report)
    assert passed, f"{words}\n{report['findings']}\n{(tmp_path / 'printed.txt').read_text(errors='replace')[-800:]}"
    assert report["exit"]["kind"] == "hang"
    assert not left_behind(tmp_path / "case")
    fact = json.loads((tmp_path / "case" / "facts" / "supervisor.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert any(thread["frames"] for process in fact["processes"] for thread in process["threads"])


@pytest.mark.timeout(200)
@pytest.mark.parametrize("specimen", named(*QUIET), ids=lambda specimen: specimen.name.replace(" ", "-"))
def test_says_nothing_of_a_program_that_is_slow(specimen: Specimen, tmp_path: Path) -> None:
    report, code = run_of(specimen.script, tmp_path, "--hang-after", "5", "--on-hang", "kill")
    passed, words = judge(specimen, report)
    assert passed, words
    assert code == 0


ONE_SAMPLE_NEVER_ARRIVES = """
import socket, torch
from torch.utils.data import DataLoader, Dataset

class Remote(Dataset):
    def __init__(self, silent):
        self.silent = silent

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.zeros(4) if index != 21 else torch.tensor(list(self.silent.recv(4)))

ours, theirs = socket.socketpair()
for batch in DataLoader(Remote(ours), batch_size=4, num_workers=2):
    pass
"""


@pytest.mark.timeout(200)
def test_a_worker_that_waits_for_orders_does_not_stand(tmp_path: Path) -> None:
    """It was forked inside the user's loop, and so that line is in its stack, too."""
    script = tmp_path / "remote.py"
    script.write_text(ONE_SAMPLE_NEVER_ARRIVES, encoding="utf-8")
    report, _ = run_of(script, tmp_path, "--hang-after", "3", "--on-hang", "kill")
    finding = report["findings"][0]
    assert finding["rule"] == "hang/dataloader-worker"
    assert "self.silent.recv(4)" in finding["where"][0]["code"]
    assert "1 of 2 worker processes" in finding["evidence"][0]


@pytest.mark.timeout(200)
def test_says_that_it_went_on(tmp_path: Path) -> None:
    script = tmp_path / "late.py"
    script.write_text(LATE, encoding="utf-8")
    report, code = run_of(script, tmp_path, "--hang-after", "3")
    assert code == 0
    assert report["exit"] == {"kind": "ok", "code": 0}
    finding = report["findings"][0]
    assert finding["rule"] == "hang/queue-nobody-feeds"
    assert finding["severity"] == "warning"
    assert finding["where"][0]["code"] == "ready.get()"
    assert any("it went on" in line for line in finding["evidence"])


@pytest.mark.timeout(200)
def test_without_the_right_to_look_inside_the_line_is_named_all_the_same(tmp_path: Path) -> None:
    """A process that may not be traced: its own faulthandler answers, and the finding says what is missing."""
    shy = tmp_path / "shy.py"
    shy.write_text(NOT_DUMPABLE, encoding="utf-8")
    sick = ZOO / "hang" / "python-lock" / "sick.py"

    def without_ptrace() -> None:
        ctypes.CDLL(None).prctl(24, 19, 0, 0, 0)  # drop CAP_SYS_PTRACE from the bounding set

    report, _ = run_of(sick, tmp_path, "--hang-after", "5", "--on-hang", "kill", words=[shy, sick], preexec_fn=without_ptrace)
    finding = report["findings"][0]
    assert finding["rule"] == "hang/python-lock"
    assert finding["where"][0]["code"].startswith("with self.")
    assert any("not seen" in line and "CAP_SYS_PTRACE" in line for line in finding["evidence"])


@pytest.fixture
def standing(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts a command in a session of its own, and ends all of it afterwards."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*command: str) -> subprocess.Popen[bytes]:
        with open(tmp_path / "printed.txt", "wb") as printed:
            started.append(subprocess.Popen(
                command, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, start_new_session=True
            ))  # fmt: skip
        return started[-1]

    yield start
    for process in started:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait(timeout=20)


def wait_until(true: Callable[[], bool], seconds: float) -> None:
    ends = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < ends, "it did not come to that"
        time.sleep(0.2)


@pytest.mark.timeout(200)
def test_a_hung_run_that_is_asked_to_end_ends_with_its_report(
    tmp_path: Path, standing: Callable[..., subprocess.Popen[bytes]]
) -> None:
    sick = ZOO / "hang" / "gil-held-by-native-code" / "sick.py"  # deaf to signals: no handler of Python's can run
    run = standing(*TRAINSLEUTH, "run", "--case", str(tmp_path / "case"), "--quiet", "--json", str(tmp_path / "report.json"),
                   "--hang-after", "60", "--", sys.executable, str(sick))  # fmt: skip
    wait_until(lambda: any((tmp_path / "case" / "beats").glob("*.beat")), 60)
    beats = tmp_path / "case" / "beats"

    def is_still() -> bool:
        before = [path.read_bytes()[:64] for path in sorted(beats.glob("*.beat"))]
        time.sleep(4)
        return bool(before) and before == [path.read_bytes()[:64] for path in sorted(beats.glob("*.beat"))]

    time.sleep(8)
    wait_until(is_still, 60)
    time.sleep(20)  # longer than any pause before it, the start included
    run.send_signal(signal.SIGTERM)
    run.wait(timeout=60)
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["findings"][0]["rule"].startswith("hang/")
    assert report["exit"]["kind"] in ("hang", "killed")
    assert not left_behind(tmp_path / "case")


@pytest.mark.timeout(200)
def test_attach_tells_stuck_from_slow(tmp_path: Path, standing: Callable[..., subprocess.Popen[bytes]]) -> None:
    sick = ZOO / "hang" / "python-lock" / "sick.py"
    stuck = standing(sys.executable, str(sick))
    slow = standing(sys.executable, "-c", "import time\nwhile True:\n    sum(range(1000))\n    time.sleep(0.001)\n")
    ends = time.monotonic() + 90
    while True:
        found = _attach(stuck.pid, tmp_path / f"a{time.monotonic_ns()}")
        if found.returncode == 1:
            break
        assert time.monotonic() < ends, found.stderr
        time.sleep(1)
    assert "hang/python-lock" in found.stderr
    assert "with self." in found.stderr
    alive = _attach(slow.pid, tmp_path / "b")
    assert alive.returncode == 0
    assert "It is alive" in alive.stdout


def _attach(pid: int, case: Path) -> subprocess.CompletedProcess[str]:
    command = [*TRAINSLEUTH, "attach", str(pid), "--case", str(case)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_attach_refuses_in_one_sentence(tmp_path: Path, standing: Callable[..., subprocess.Popen[bytes]]) -> None:
    for pid, words in ((2_000_000_000, "there is no process"), (standing("sleep", "60").pid, "is not Python")):
        refused = _attach(pid, tmp_path / "case")
        assert refused.returncode == 2
        assert words in refused.stderr
        assert len(refused.stderr.strip().splitlines()) == 1
        assert not (tmp_path / "case").exists()
