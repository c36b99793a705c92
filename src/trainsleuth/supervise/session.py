"""One watched run, from the start of the program to the report."""

from __future__ import annotations

import json
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from trainsleuth import __version__
from trainsleuth.case.fatal import SIGNALS, ended_by
from trainsleuth.case.folder import Case, create_case, write_json
from trainsleuth.case.run_chart import RunChart
from trainsleuth.case.weights_files import weights_in
from trainsleuth.report.json_report import as_json
from trainsleuth.rules.arbiter import Diagnosis, diagnose
from trainsleuth.rules.catalogue import all_rules
from trainsleuth.rules.kinds import Finding
from trainsleuth.supervise.code_kept import keep_sources
from trainsleuth.supervise.command import CommandError, environment_for, on_network, resolve
from trainsleuth.supervise.ending import Ending
from trainsleuth.supervise.standing import Standing
from trainsleuth.supervise.standstill import StandstillWatch, can_look

LOOK_EVERY = 0.5
WITH_NOTHING_TO_SHOW = 10.0  # seconds; before that the look-out or a signal rings
FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
PATIENCE = 300  # windows after which a statistical finding may be shown while the run goes on


class ReportError(Exception):
    """Why there is no report, in a sentence, and the return code of the program."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


OnFinding = Callable[[Finding, Case], None]
Examine = Callable[[Case, RunChart], None]
OnHang = Literal["report", "kill", "wait"]


@dataclass(frozen=True)
class HangPolicy:
    """What to do about a standstill, and after how many seconds; None learns them from the run."""

    on: bool = True
    after: float | None = None
    then: OnHang = "report"


def watch_run(
    words: Sequence[str], folder: Path | None, budget: float, on_finding: OnFinding | None = None,
    on_hang: OnFinding | None = None, hangs: HangPolicy | None = None, examine: Examine | None = None,
) -> tuple[Case, dict[str, Any], int]:  # fmt: skip
    """Run the command; the case, its report, and the program's return code as `subprocess` gives it.

    `on_finding` is called for each finding while the run goes on, `on_hang` for those about a standstill where it is not.
    `examine` may look closer at what went wrong once the program has ended by itself.
    """
    from _trainsleuth_inside.secrets import without_secrets

    hangs = hangs or HangPolicy()
    command = resolve(words, os.environ)
    cwd = Path.cwd()
    case = create_case(without_secrets(command), cwd, folder, trainsleuth=__version__, platform=platform.platform())
    beats = case.folder / "beats"
    if on_network(case.folder):
        beats = Path(tempfile.mkdtemp(prefix="trainsleuth-beats-"))
        case = case.update(beats=str(beats))
    with _signals_as_without_us() as signals:
        child = _start(command, environment_for(case.folder, beats, budget, os.environ), case)
        signals.meant_for(child)
        case = case.update(git=_git_commit(cwd), pid=child.pid, sources=keep_sources(command, cwd, case.folder), weights_before=weights_in(cwd))
        chart = RunChart(case.facts)
        standing = Standing(StandstillWatch(child.pid, beats, hangs.after), case, hangs.then) if hangs.on and can_look() else None
        with Ending(child) as ending:
            signals.ring = ending.ring
            code = _follow(ending, chart, case, signals, standing, on_finding, on_hang)
    if code < 0 and (signals.asked_at is None or code == -signal.SIGKILL):
        _note_the_fault(case, child.pid, -code)
    if examine is not None and code >= 0 and signals.asked_at is None:
        chart.refresh()
        examine(case, chart)
    try:
        return case, finish(case, chart, _exit(code, standing is not None and standing.unrecovered)), code
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
    ending: Ending, chart: RunChart, case: Case, signals: _Signals, standing: Standing | None,
    on_finding: OnFinding | None, on_hang: OnFinding | None,
) -> int:  # fmt: skip
    shown: set[tuple[str, str]] = set()
    pause = LOOK_EVERY
    if on_finding is not None:
        all_rules()  # loading them is no part of what one look costs
    if standing is not None:
        standing.begin(ending.ring)
        signals.looks_first = standing.is_quiet
    while True:
        code = ending.within(pause if on_finding is not None or signals.asked_at is not None else WITH_NOTHING_TO_SHOW)
        if code is not None:
            if standing is not None:
                standing.end()
            return code
        began = time.process_time()
        show = on_finding
        try:
            if standing is not None and (standing.changed(signals.asked_at) or (signals.held and standing.last_look())):
                show = on_finding or on_hang
            if show is not None and chart.refresh():
                for finding in _worth_showing(diagnose(chart), chart):
                    key = (finding.rule, finding.where[0].file if finding.where else "")
                    if key not in shown and (on_finding is not None or finding.about_standstill):
                        shown.add(key)
                        show(finding, case)
        except Exception:  # the program runs on; the end of the run says what is wrong with us
            on_finding = on_hang = None
        signals.release()
        pause = max(LOOK_EVERY, 50 * (time.process_time() - began))  # at most 2 % of one core


def _worth_showing(diagnosis: Diagnosis, chart: RunChart) -> Iterator[Finding]:
    """While the run goes on: what the structure proves, and what statistics say after many windows."""
    windows = max((process.windows for process in chart.training()), default=0)
    for finding in diagnosis.findings:
        if finding.severity == "note" or finding.rule in ("crash/exception", "crash/known"):
            continue
        if finding.structural or windows >= PATIENCE:
            yield finding


def _start(command: Sequence[str], environment: dict[str, str], case: Case) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, env=environment)
    except OSError as problem:
        shutil.rmtree(case.folder, ignore_errors=True)
        raise CommandError(f"{command[0]} cannot be run: {problem.strerror}.") from problem


class _Signals:
    """The signals that are sent to us, and the process that they are meant for; what came before it began is passed on then."""

    def __init__(self) -> None:
        self.asked_at: float | None = None  # when somebody asked for the end, first
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self.held: list[int] = []
        self.looks_first: Callable[[], bool] = lambda: False  # whether the run is so quiet that it is looked at before it ends
        self.ring: Callable[[], None] = lambda: None  # wakes whoever waits for the end

    def passed_on(self, number: int, _: Any) -> None:
        if number in (signal.SIGTERM, signal.SIGINT):
            self.asked_at = self.asked_at or time.monotonic()
        if self._child is None:
            self._early.append(number)
        elif number == signal.SIGTERM and self.looks_first():
            self.held.append(number)
        else:
            _send(self._child, number)
        self.ring()

    def release(self) -> None:
        """Pass on what was held back for a last look."""
        while self.held and self._child is not None:
            _send(self._child, self.held.pop(0))

    def interrupted(self, number: int, frame: Any) -> None:
        """From the terminal it reaches the program without us."""
        if self._child is None or not _in_the_foreground():
            self.passed_on(number, frame)
        elif number == signal.SIGINT:
            self.asked_at = self.asked_at or time.monotonic()
            self.ring()

    def meant_for(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        for number in self._early:
            _send(child, number)


@contextmanager
def _signals_as_without_us() -> Iterator[_Signals]:
    """Ctrl-C reaches the program from the terminal, as always; other signals that are sent to us are passed on.

    A signal that is ignored (nohup, a job in the background) stays ignored, for us and for the program.
    """
    signals = _Signals()
    handlers = {number: signals.passed_on for number in FORWARDED} | {
        signal.SIGINT: signals.interrupted, signal.SIGQUIT: signals.interrupted,
    }  # fmt: skip
    previous = {}
    for number, handler in handlers.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            previous[number] = signal.signal(number, handler)
    try:
        yield signals
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


def _exit(code: int, stood: bool) -> dict[str, Any]:
    if stood and code != 0:
        return {"kind": "hang", "code": 128 - code if code < 0 else code}
    if code < 0:
        return {"kind": "killed", "code": 128 - code, "signal": _signal_name(-code)}
    return {"kind": "ok" if code == 0 else "crash", "code": code}


def _note_the_fault(case: Case, pid: int, number: int) -> None:
    """That a fault in native code ended the program, for programs that have a faulthandler of their own: theirs knows the line, ours does not.

    Or that somebody else ended it, in a way that it could not say a word about.
    """
    what = next((what for what, name in SIGNALS.items() if name == _signal_name(number)), None)
    fact = {**ended_by(what), "pid": pid} if what is not None else {"k": "killed", "signal": _signal_name(number)}
    with (case.facts / "supervisor.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(fact) + "\n")


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
