"""One watched run, from the start of the program to the report."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainsleuth import __version__
from trainsleuth.case.folder import Case, create_case, write_json
from trainsleuth.case.run_chart import RunChart
from trainsleuth.report.json_report import as_json
from trainsleuth.rules.arbiter import Diagnosis, diagnose
from trainsleuth.rules.catalogue import all_rules
from trainsleuth.rules.kinds import Finding
from trainsleuth.supervise.command import CommandError, environment_for, on_network, resolve

LOOK_EVERY = 0.5
FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
PATIENCE = 300  # windows after which a statistical finding may be shown while the run goes on


class ReportError(Exception):
    """Why there is no report, in a sentence, and the return code of the program."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


def watch_run(
    words: Sequence[str], folder: Path | None, budget: float, on_finding: Callable[[Finding, Case], None] | None
) -> tuple[Case, dict[str, Any], int]:
    """Run the command; the case, its report, and the program's return code as `subprocess` gives it."""
    from _trainsleuth_inside.secrets import without_secrets

    command = resolve(words, os.environ)
    cwd = Path.cwd()
    case = create_case(without_secrets(command), cwd, folder, trainsleuth=__version__, platform=platform.platform())
    beats = case.folder / "beats"
    if on_network(case.folder):
        beats = Path(tempfile.mkdtemp(prefix="trainsleuth-beats-"))
        case = case.update(beats=str(beats))
    with _signals_as_without_us() as meant_for:
        child = _start(command, environment_for(case.folder, beats, budget, os.environ), case)
        meant_for(child)
        case = case.update(git=_git_commit(cwd), pid=child.pid)
        chart = RunChart(case.facts)
        code = _follow(child, chart, case, on_finding)
    try:
        return case, finish(case, chart, _exit(code)), code
    except Exception as problem:  # whatever we cannot do, the program has ended in its own way
        raise ReportError(
            f"the run ended, but its report could not be made ({type(problem).__name__}: {problem}).", code
        ) from problem


def finish(case: Case, chart: RunChart, ended: dict[str, Any]) -> dict[str, Any]:
    """Read the last facts, judge, and write the report into the case."""
    chart.refresh()
    diagnosis = diagnose(chart)
    first = next((process for process in chart.with_torch()), None)
    case = case.update(
        exit=ended, ended=time.time(), probes_off=chart.probes_off()[:20],
        torch=first.environment.get("torch") if first else None, python=first.process.get("python") if first else None,
    )  # fmt: skip
    report = as_json(case, diagnosis)
    write_json(case.folder / "report.json", report)
    return report


def _follow(
    child: subprocess.Popen[bytes], chart: RunChart, case: Case, on_finding: Callable[[Finding, Case], None] | None
) -> int:
    shown: set[tuple[str, str]] = set()
    pause = LOOK_EVERY
    if on_finding is not None:
        all_rules()  # loading them is no part of what one look costs
    while True:
        try:
            return child.wait(timeout=pause)
        except subprocess.TimeoutExpired:
            pass
        began = time.process_time()
        try:
            if on_finding is not None and chart.refresh():
                for finding in _worth_showing(diagnose(chart), chart):
                    key = (finding.rule, finding.where[0].file if finding.where else "")
                    if key not in shown:
                        shown.add(key)
                        on_finding(finding, case)
        except Exception:  # the program runs on; the end of the run says what is wrong with us
            on_finding = None
        pause = max(LOOK_EVERY, 50 * (time.process_time() - began))  # at most 2 % of one core


def _worth_showing(diagnosis: Diagnosis, chart: RunChart) -> Iterator[Finding]:
    """While the run goes on: what the structure proves, and what statistics say after many windows."""
    windows = max((process.windows for process in chart.training()), default=0)
    for finding in diagnosis.findings:
        if finding.severity == "note" or finding.rule == "crash/exception":
            continue
        if finding.structural or windows >= PATIENCE:
            yield finding


def _start(command: Sequence[str], environment: dict[str, str], case: Case) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, env=environment)
    except OSError as problem:
        shutil.rmtree(case.folder, ignore_errors=True)
        raise CommandError(f"{command[0]} cannot be run: {problem.strerror}.") from problem


@contextmanager
def _signals_as_without_us() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Ctrl-C reaches the program from the terminal, as always; other signals that are sent to us are passed on.

    Yields a function to say which process they are meant for; what came before that is passed on then. A signal that is
    ignored (nohup, a job in the background) stays ignored, for us and for the program.
    """
    children: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def passed_on(number: int, _: Any) -> None:
        if children:
            _send(children[0], number)
        else:
            early.append(number)

    def interrupted(number: int, frame: Any) -> None:
        if not children or not _in_the_foreground():
            passed_on(number, frame)

    def meant_for(child: subprocess.Popen[bytes]) -> None:
        children.append(child)
        for number in early:
            _send(child, number)

    handlers = {number: passed_on for number in FORWARDED} | {signal.SIGINT: interrupted, signal.SIGQUIT: interrupted}
    previous = {}
    for number, handler in handlers.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            previous[number] = signal.signal(number, handler)
    try:
        yield meant_for
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


def _send(child: subprocess.Popen[bytes], number: int) -> None:
    if child.poll() is None:
        child.send_signal(number)


def _in_the_foreground() -> bool:
    for stream in (0, 1, 2):
        try:
            return os.tcgetpgrp(stream) == os.getpgrp()
        except OSError:
            continue
    return False


def _exit(code: int) -> dict[str, Any]:
    if code < 0:
        return {"kind": "killed", "code": 128 - code, "signal": _signal_name(-code)}
    return {"kind": "ok" if code == 0 else "crash", "code": code}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal between the first and the last
        return f"signal {number}"


def _git_commit(cwd: Path) -> str | None:
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=cwd, timeout=2,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def leave_like(code: int) -> None:
    """End as the program ended: with its exit code, or by the signal that killed it."""
    sys.stdout.flush()
    sys.stderr.flush()
    if code >= 0:
        raise SystemExit(code)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    number = -code
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    raise SystemExit(128 + number)
