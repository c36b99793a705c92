"""Watching programs from tests: through the real command line, or quickly through a fork of a process that has torch loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from trainsleuth.case.folder import Case, create_case
from trainsleuth.case.run_chart import RunChart
from trainsleuth.supervise.command import environment_for
from trainsleuth.supervise.session import finish
from trainsleuth.trials import examine, sandbox

HERE = Path(__file__).resolve().parent
ZOO = HERE.parent / "zoo"

needs_sandbox = pytest.mark.skipif(
    sandbox.available() is not None, reason=f"trials need a sandbox, which this machine does not allow: {sandbox.available()}"
)


@dataclass
class Watched:
    """What TrainSleuth made of one program."""

    report: dict[str, Any]
    chart: RunChart
    code: int
    output: str
    folder: Path

    @property
    def findings(self) -> list[dict[str, Any]]:
        return list(self.report["findings"])

    @property
    def loud(self) -> list[dict[str, Any]]:
        return [finding for finding in self.findings if finding["severity"] != "note"]

    @property
    def rules(self) -> list[str]:
        return [finding["rule"] for finding in self.findings]

    def why(self) -> str:
        rows = [(f["rule"], f["severity"], f["title"], f["where"]) for f in self.findings]
        return f"{rows}\nabstained: {self.report['abstained']}\noff: {self.report['probes_off']}\noutput: {self.output[-1500:]}"


class ForkServer:
    """One process with torch and the probes loaded; forks for each program."""

    def __init__(self, folder: Path) -> None:
        (folder / "facts").mkdir(parents=True)
        (folder / "beats").mkdir()
        environment = environment_for(folder, folder / "beats", 0.01, {**os.environ, "OMP_NUM_THREADS": "1"})
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "fork_server.py")],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, script: Path, folder: Path, argv: Sequence[str] = (), cwd: Path | None = None) -> Watched:
        case = create_case([sys.executable, str(script), *argv], cwd or script.parent, folder)
        job = {"script": str(script), "argv": list(argv), "cwd": str(cwd or script.parent), "case": str(case.folder)}
        chart = RunChart(case.facts)
        code = self._answer(job)
        chart.refresh()
        self._examine(case, chart, job)
        ended = {"kind": "ok" if code == 0 else "crash" if code > 0 else "killed", "code": code}
        report = finish(case, chart, ended)
        return Watched(report, chart, code, (case.folder / "output.txt").read_text(errors="replace"), case.folder)

    def turn(self, script: Path, folder: Path, knobs: str) -> int:
        """Run a program with knobs, its facts going to this folder; its exit code."""
        argv = [knobs, str(script)]
        return self._answer({"script": str(HERE / "trials" / "turned.py"), "argv": argv, "cwd": str(script.parent), "case": str(folder)})

    def _answer(self, job: dict[str, Any]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return int(json.loads(self._process.stdout.readline())["code"])

    def _examine(self, case: Case, chart: RunChart, job: dict[str, Any]) -> None:
        """What `trainsleuth run` does in a sandbox after a run that broke, in one more fork."""
        examination = examine.wanted(chart)
        if examination is None:
            return
        folder = case.folder / "examination"
        for part in ("facts", "beats"):
            (folder / part).mkdir(parents=True)
        knobs = [{"knob": "every-window"}]
        knobs += [{"knob": setting.knob, "options": dict(setting.options)} for setting in examine.settings_of(examination)]
        argv = [json.dumps(knobs), job["script"], *job["argv"]]
        self._answer({**job, "script": str(HERE / "trials" / "turned.py"), "argv": argv, "case": str(folder)})
        examine.note(case, examination, examine.result_of(folder, examination))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=20)


def trainsleuth(*words: str, cwd: Path, limit: float = 240, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command line itself, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "trainsleuth", *words], cwd=cwd, capture_output=True, text=True, timeout=limit, **options
    )
