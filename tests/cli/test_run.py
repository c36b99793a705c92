"""`trainsleuth run`: the program runs as without us, whatever kind of command it is, and the report is where it was asked for."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from side_by_side import report_of
from watching import trainsleuth

TRAINSLEUTH = [sys.executable, "-m", "trainsleuth"]
LEARNS = """
import sys
import torch
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    x = torch.randn(8, 3)
    loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("trained", sys.argv[1:], flush=True)
"""
ACTIVE = {**os.environ, "VIRTUAL_ENV": sys.prefix}
WAITS = "import time\nprint('ready', flush=True); time.sleep(60)\n"


def write(path: Path, text: str, executable: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if executable:
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def cases(folder: Path) -> list[Path]:
    return sorted((folder / ".trainsleuth" / "cases").glob("*")) if (folder / ".trainsleuth").exists() else []


# -- any command -------------------------------------------------------------------------------------------------------


def test_a_training_script_with_arguments(tmp_path: Path) -> None:
    """The summary goes to standard error and only there; the case lies below the working folder and out of git's sight."""
    write(tmp_path / "train.py", LEARNS)
    done = trainsleuth("run", "train.py", "--lr", "1", "--quiet", cwd=tmp_path, env=ACTIVE)
    assert (done.returncode, done.stdout) == (0, "trained ['--lr', '1', '--quiet']\n")
    assert done.stderr.lstrip().startswith("trainsleuth  healthy")
    assert "\x1b" not in done.stderr
    (case,) = cases(tmp_path)
    assert re.fullmatch(r"\d{8}-\d{6}-train", case.name)
    assert (tmp_path / ".trainsleuth" / ".gitignore").read_text() == "*\n"
    report = report_of(case)
    assert (report["verdict"], report["exit"]) == ("healthy", {"kind": "ok", "code": 0})


@pytest.mark.parametrize("kind", ["module", "shell", "console script"])
def test_other_kinds_of_commands(tmp_path: Path, kind: str) -> None:
    """Without torch, to be quick: what reached the process is written as soon as it starts."""
    program = "import sys\nprint(sys.argv[1:], __name__)\nsys.exit(4)\n"
    if kind == "module":
        write(tmp_path / "pkg" / "__init__.py", "")
        write(tmp_path / "pkg" / "train.py", program)
        command = [sys.executable, "-m", "pkg.train"]
    elif kind == "shell":
        write(tmp_path / "train.py", program)
        write(tmp_path / "go.sh", f'{sys.executable} train.py "$@"\n')
        command = ["bash", "go.sh"]
    else:
        command = [str(write(tmp_path / "bin" / "my-train", f"#!{sys.executable}\n{program}", executable=True))]
    done = trainsleuth("run", "--case", "case", "--", *command, "a b", "--case", "x", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (4, "['a b', '--case', 'x'] __main__\n")
    report = report_of(tmp_path / "case")
    assert report["exit"] == {"kind": "crash", "code": 4}
    assert "did not import torch" in report["why_unsure"]


def test_a_script_is_run_by_the_python_of_the_active_environment(tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(other)], check=True, timeout=120)
    program = (
        "import importlib.util, sys\nprint(sys.prefix, importlib.util.find_spec('trainsleuth'), 'trainsleuth' in sys.modules)\n"
    )
    write(tmp_path / "where.py", program)
    done = trainsleuth("run", "--quiet", "where.py", cwd=tmp_path, env={**os.environ, "VIRTUAL_ENV": str(other)})
    assert done.stdout == f"{other} None False\n"
    (case,) = cases(tmp_path)
    assert list((case / "facts").iterdir()), "the probes run on a Python that TrainSleuth is not installed in"


# -- the end of the program is our end ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "code", "kind"),
    [("pass", 0, "ok"), ("raise SystemExit(3)", 3, "crash"), ("raise ValueError('no')", 1, "crash"),
     ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9, "killed"), ("import os; os.abort()", -6, "killed")],
)  # fmt: skip
def test_the_exit_code_is_the_programs(tmp_path: Path, program: str, code: int, kind: str) -> None:
    done = trainsleuth("run", "--quiet", "--case", "case", "--", sys.executable, "-c", program, cwd=tmp_path)
    assert done.returncode == code
    assert done.stdout == ""
    assert report_of(tmp_path / "case")["exit"]["kind"] == kind


def test_an_exception_prints_the_same_traceback_and_is_found(tmp_path: Path) -> None:
    write(tmp_path / "train.py", "def build():\n    raise ValueError('no such layer')\n\nbuild()\n")
    plain = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    done = trainsleuth("run", "--quiet", "--case", "case", "--", sys.executable, "train.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, plain.stderr)
    (finding,) = report_of(tmp_path / "case")["findings"]
    assert (finding["rule"], finding["where"][0]["line"]) == ("crash/exception", 2)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_a_signal_to_the_supervisor_reaches_the_program(tmp_path: Path, number: signal.Signals) -> None:
    run = start(tmp_path, "run", "--quiet", "--case", "case", "--", sys.executable, "-c", WAITS)
    wait_for(run, "ready")
    run.send_signal(number)
    expected = {signal.SIGTERM: -15, signal.SIGINT: -2, signal.SIGUSR1: -10}[number]
    assert run.wait(timeout=30) == expected
    assert report_of(tmp_path / "case")["exit"]["signal"] == number.name


def test_a_program_that_handles_sigterm_ends_in_its_own_way(tmp_path: Path) -> None:
    program = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n" + WAITS
    run = start(tmp_path, "run", "--quiet", "--", sys.executable, "-c", program)
    wait_for(run, "ready")
    run.terminate()
    assert run.wait(timeout=30) == 7


def test_an_ignored_hangup_stays_ignored(tmp_path: Path) -> None:
    """As under nohup."""
    program = "import signal; print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    words = [*TRAINSLEUTH, "run", "--quiet", "--", sys.executable, "-c", program]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    assert done.stdout == "True\n"


def test_standard_input_passes_through(tmp_path: Path) -> None:
    program = "import sys; print(sys.stdin.read().upper(), end='')"
    done = trainsleuth("run", "--quiet", "--", sys.executable, "-c", program, cwd=tmp_path, input="one\ntwo\n")
    assert done.stdout == "ONE\nTWO\n"


# -- nothing is known --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [[sys.executable, "-I"], ["env", "-i", sys.executable], [sys.executable, "-S"]])
def test_where_no_probe_arrives_the_verdict_is_unsure(tmp_path: Path, how: list[str]) -> None:
    done = trainsleuth("run", "--case", "case", "--", *how, "-c", "print('done')", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "unsure" in done.stderr
    assert "no probe reached the program" in " ".join(done.stderr.split())
    assert report_of(tmp_path / "case")["verdict"] == "unsure"


# -- bad calls ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["missing.py"],
        ["--", "python", "missing.py"],
        ["--", "no-such-command"],
        [],
        ["--", "./text"],
        ["--json", "no/such/x", "ok.py"],
    ],
)
def test_a_bad_call_is_one_sentence_and_leaves_no_case(tmp_path: Path, words: list[str]) -> None:
    write(tmp_path / "text", "not a program\n", executable=True)
    write(tmp_path / "ok.py", "print('never run')\n")
    done = trainsleuth("run", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert done.stderr.startswith("trainsleuth: ")
    assert cases(tmp_path) == []


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "full" / "precious.txt", "mine")
    done = trainsleuth("run", "--case", "full", "--", sys.executable, "-c", "print('never run')", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "not empty" in done.stderr
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["precious.txt"]


# -- options -----------------------------------------------------------------------------------------------------------


def test_options(tmp_path: Path) -> None:
    """--json writes the report, --quiet prints nothing, --budget arrives inside, --case keeps the case where it was asked to."""
    program = "import os; print(os.environ['TRAINSLEUTH_BUDGET'])"
    done = trainsleuth(
        "run",
        "--quiet",
        "--json",
        "r.json",
        "--budget",
        "2.5",
        "--case",
        "here",
        "--",
        sys.executable,
        "-c",
        program,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "0.025\n", "")
    report = json.loads((tmp_path / "r.json").read_text())
    assert report == report_of(tmp_path / "here")
    assert (report["schema"], report["case"]) == (1, "here")
    assert cases(tmp_path) == []
    done = trainsleuth("run", "--quiet", "--json", "-", "--", sys.executable, "-c", "pass", cwd=tmp_path)
    assert json.loads(done.stdout)["schema"] == 1


def test_secrets_on_the_command_line_are_not_in_the_case(tmp_path: Path) -> None:
    secrets = ["hunter2", "sesame-open", "hf_abcdefghijklmnopqrst", "tiger77", "lemon55"]
    words = [
        "--password",
        secrets[0],
        f"--api-key={secrets[1]}",
        secrets[2],
        f"WANDB_API_KEY={secrets[3]}",
        f"https://me:{secrets[4]}@x.org",
    ]
    kept = ["--tokenizer", "bert-base", "--num-passes", "3", "--max_tokens=512", "--author", "ada"]
    done = trainsleuth(
        "run", "--case", "case", "--", sys.executable, "-c", "import sys; print(sys.argv[1:])", *words, *kept, cwd=tmp_path
    )
    assert str([*words, *kept]) in done.stdout, "the program itself gets what was typed"
    written = "".join(path.read_text() for path in (tmp_path / "case").rglob("*.json*"))
    assert not [secret for secret in secrets if secret in written]
    assert all(f'"{word}"' in written for word in kept)


# -- on a terminal -----------------------------------------------------------------------------------------------------

FORGETS_TO_STEP = """
import sys, time
import torch
torch.set_num_threads(1)
model = torch.nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(60):
    for x, y in torch.utils.data.DataLoader([(torch.randn(3), i % 2) for i in range(16)], batch_size=4):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
    sys.stderr.write(f"\\repoch {epoch}")
    sys.stderr.flush()
    time.sleep(0.05)
print("\\nthe last line of the program")
"""


def test_findings_appear_on_a_terminal_while_the_run_goes_on_once_each(tmp_path: Path) -> None:
    write(tmp_path / "train.py", FORGETS_TO_STEP)
    code, shown = on_a_terminal(tmp_path, [*TRAINSLEUTH, "run", "train.py"])
    assert code == 0
    before, _, after = shown.partition("the last line of the program")
    assert before.count("stall/optimizer-never-steps") == 1
    assert before.index("\x1b[2K") < before.index("stall/optimizer-never-steps")
    assert after.count("stall/optimizer-never-steps") == 1
    assert "epoch" in before[before.index("stall/optimizer-never-steps") :]


def test_control_c_on_a_terminal_ends_as_without_us(tmp_path: Path) -> None:
    program = [sys.executable, "-c", WAITS]
    endings = []
    for words in (program, [*TRAINSLEUTH, "run", "--quiet", "--case", "case", "--", *program]):
        endings.append(on_a_terminal(tmp_path, words, lambda shown: b"\x03" if "ready\r\n" in shown else None))
    (plain_code, plain), (code, shown) = endings
    assert (code, shown) == (plain_code, plain)
    assert code == -signal.SIGINT
    assert plain.count("KeyboardInterrupt") == 1
    assert report_of(tmp_path / "case")["exit"] == {"kind": "killed", "code": 130, "signal": "SIGINT"}


def on_a_terminal(cwd: Path, words: Sequence[str], answer: Callable[[str], bytes | None] = lambda _: None) -> tuple[int, str]:
    """Run on a terminal of its own; `answer` may type something, once, after it has seen enough."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.execvpe(words[0], list(words), ACTIVE)
    shown, limit = "", time.monotonic() + 120
    answered = False
    while time.monotonic() < limit:
        ready, _, _ = select.select([terminal], [], [], 1.0)
        if ready:
            try:
                read = os.read(terminal, 65536)
            except OSError:
                break
            if not read:
                break
            shown += read.decode(errors="replace")
        typed = None if answered else answer(shown)
        if typed is not None:
            os.write(terminal, typed)
            answered = True
    else:
        os.kill(pid, signal.SIGKILL)
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


def start(cwd: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*TRAINSLEUTH, *words], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def wait_for(run: subprocess.Popen[Any], line: str) -> None:
    assert run.stdout is not None
    assert run.stdout.readline() == f"{line}\n"


def test_a_fault_in_native_code_is_found_with_its_line(tmp_path: Path) -> None:
    program = tmp_path / "reads_nothing.py"
    program.write_text("import ctypes\nimport torch\n\n\ndef look():\n    return ctypes.string_at(0)\n\n\nlook()\n")
    done = trainsleuth("run", "--quiet", "--case", "case", "--", sys.executable, program.name, cwd=tmp_path)
    assert done.returncode == -signal.SIGSEGV
    report = report_of(tmp_path / "case")
    assert report["verdict"] == "sick"
    (finding,) = report["findings"]
    assert (finding["rule"], finding["where"][0]["line"]) == ("crash/native-code", 6)
    assert "Fatal" not in done.stderr  # the program's own output is as without us


def test_a_faulthandler_of_the_programs_own_is_left_alone(tmp_path: Path) -> None:
    program = tmp_path / "asks_itself.py"
    program.write_text("import ctypes, faulthandler, os\nimport torch\nfaulthandler.enable()\nif os.fork():\n    os.wait()\nctypes.string_at(0)\n")
    done = trainsleuth("run", "--quiet", "--case", "case", "--", sys.executable, program.name, cwd=tmp_path)
    assert done.returncode == -signal.SIGSEGV
    assert done.stderr.count("Fatal Python error: Segmentation fault") == 2
    assert report_of(tmp_path / "case")["findings"][0]["rule"] == "crash/native-code"


def test_a_forked_child_that_trains_has_its_fault_found(tmp_path: Path) -> None:
    program = tmp_path / "forks.py"
    program.write_text(
        "import ctypes, os\nimport torch\n\n\ndef train():\n    w = torch.nn.Linear(2, 1)\n    w(torch.ones(3, 2)).sum().backward()\n"
        "    ctypes.string_at(0)\n\n\nif os.fork() == 0:\n    train()\nos.wait()\n"
    )
    done = trainsleuth("run", "--quiet", "--case", "case", "--", sys.executable, program.name, cwd=tmp_path)
    assert done.returncode == 0
    finding = report_of(tmp_path / "case")["findings"][0]
    assert (finding["rule"], finding["where"][0]["line"]) == ("crash/native-code", 8)


def test_a_run_that_was_killed_is_not_called_healthy(tmp_path: Path) -> None:
    write(tmp_path / "train.py", LEARNS + "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    done = trainsleuth("run", "--quiet", "--case", "case", "--", sys.executable, "train.py", cwd=tmp_path)
    report = report_of(tmp_path / "case")
    assert (done.returncode, report["verdict"]) == (-9, "unsure")
    assert "killed from outside" in report["why_unsure"]
