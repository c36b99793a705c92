"""Settles the suspected causes of a case: runs control, knob and placebo, and yields what happens as it happens.

Trials that the case already has are not run again. Whoever stops listening (Ctrl-C, a budget) keeps what is known: each trial is
stored when it ends.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from _trainsleuth_inside.secrets import HIDDEN
from trainsleuth.case import Case
from trainsleuth.case.run_chart import RunChart
from trainsleuth.trials import sandbox, trial
from trainsleuth.trials.knobs import Knob, Pointed, knob_for
from trainsleuth.trials.measure import measure
from trainsleuth.trials.trial import Known, Outcome, Setting, Trial
from trainsleuth.trials.verdict import Verdict, gains, judge

MOST_WINDOWS = 200
FEWEST_WINDOWS = 20
LEAST_SECONDS = 2.0
PLACEBO_SEEDS = (1000, 2000)


class Suspected(Protocol):
    """A finding, as far as a trial must know it."""

    @property
    def id(self) -> str: ...
    @property
    def rule(self) -> str: ...
    @property
    def where(self) -> Sequence[Pointed]: ...


@dataclass(frozen=True)
class Begun:
    """A trial starts now and has so many seconds."""

    label: str
    seconds: float


@dataclass(frozen=True)
class Done:
    """A trial has ended, or was known from before."""

    known: Known
    from_before: bool = False


@dataclass(frozen=True)
class Settled:
    """A cause is settled, as far as it can be."""

    finding: str
    verdict: Verdict


@dataclass(frozen=True)
class Unsettled:
    """A finding for which nothing could be tried, and why."""

    finding: str
    rule: str
    why: str


Event = Begun | Done | Settled | Unsettled


class OutOfTime(Exception):
    """The budget is used up."""


@dataclass
class Bench:
    """Where the trials of one case are run: its command, what is left of the budget, and what is known from before."""

    case: Case
    deadline: float
    unsafe: bool = False
    windows: int = 0
    jobs: int = 0  # trials side by side; one where a device is shared
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def __post_init__(self) -> None:
        if HIDDEN in " ".join(self.case.command):
            raise sandbox.SandboxError("the command line held a secret, which the case does not keep; run the program without it")
        self.case.trials.mkdir(exist_ok=True)
        self.known = trial.load_all(self.case.trials)
        chart = RunChart(self.case.facts)
        chart.refresh()
        seen = max((process.windows for process in chart.training()), default=0)
        self._numbers = max((int(known.id[1:]) for known in self.known), default=0)
        self.jobs = self.jobs or (1 if _on_a_device(chart) else max(1, min(3, len(os.sched_getaffinity(0)))))
        self.windows = self.windows or max(FEWEST_WINDOWS, min(seen or MOST_WINDOWS, MOST_WINDOWS))

    def left(self) -> float:
        return self.deadline - time.monotonic()

    def trial(self, role: trial.Role, label: str, settings: Sequence[Setting] = (), *, files: Mapping[Path, bytes] | None = None,
              watched: Sequence[Path] = ()) -> Trial:  # fmt: skip
        """A trial of this case; its key changes when a source file of the program changes."""
        script = [self.case.cwd / word for word in self.case.command if word.endswith(".py")]
        sources = trial.digest(self.case.cwd, self.case.folder, [*script, *watched])
        return Trial(role, label, tuple(settings), self.windows, sources, files or {})

    def run(self, wanted: Sequence[Trial], share: int = 1) -> Iterator[Event]:
        """Run trials side by side with their share of the time that is left; those that are known are not run again."""
        before = {known.key: known for known in self.known}
        fresh = [one for one in wanted if one.key not in before]
        for one in wanted:
            if one.key in before:
                yield Done(before[one.key], from_before=True)
        seconds = self.left() / max(1, share) / max(1, -(-len(fresh) // self.jobs))
        if not fresh:
            return
        if seconds < LEAST_SECONDS:
            raise OutOfTime
        cancel = threading.Event()
        with ThreadPoolExecutor(self.jobs) as pool:
            try:
                running = []
                for one in fresh:
                    yield Begun(one.label, seconds)
                    running.append(pool.submit(self._run_one, one, self._fresh_folder(), seconds, cancel))
                for ended in as_completed(running):
                    known = ended.result()
                    if known.outcome.kind != "hang":
                        self.known.append(known)
                        trial.save(self.case.trials, known)
                    yield Done(known)
            finally:
                cancel.set()

    def _run_one(self, wanted: Trial, folder: Path, seconds: float, cancel: threading.Event) -> Known:
        ended = trial.run(
            wanted, self.case.command, self.case.cwd, self.environment, folder, seconds, unsafe=self.unsafe, cancel=cancel
        )
        return Known(folder.name, wanted.role, wanted.label, wanted.key, measure(wanted, folder, ended))

    def _fresh_folder(self) -> Path:
        """T1, T2 and so on; a folder without a result beside it was cut short, and is used again."""
        self._numbers += 1
        folder = self.case.trials / f"T{self._numbers}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder


def _on_a_device(chart: RunChart) -> bool:
    return Path("/dev/nvidia0").exists() and any(process.environment.get("cuda") for process in chart.with_torch())


def require_sandbox(unsafe: bool) -> None:
    reason = None if unsafe else sandbox.available()
    if reason is not None:
        raise sandbox.SandboxError(sandbox.refusal(reason))


def settle(bench: Bench, findings: Sequence[Suspected]) -> Iterator[Event]:
    """Try the causes of these findings, one after the other, until all are settled or the time is over."""
    require_sandbox(bench.unsafe)
    for index, finding in enumerate(findings):
        knob = knob_for(finding.rule)
        if knob is None:
            yield Unsettled(finding.id, finding.rule, "no knob changes what this rule suspects, so watching is all there is")
            continue
        try:
            yield from _settle_one(bench, finding, knob, share=len(findings) - index)
        except OutOfTime:
            yield Unsettled(finding.id, finding.rule, "the budget is used up; the trials that were run are kept")


def _settle_one(bench: Bench, finding: Suspected, knob: Knob, share: int) -> Iterator[Event]:
    files = [Path(place.file) for place in finding.where]
    control = bench.trial("control", "control", watched=files)
    turned = bench.trial("knob", knob.label, [Setting(knob.name, knob.options(finding.where))], watched=files)
    first, second = (
        bench.trial("placebo", "other seed", [Setting("seed", {"offset": offset})], watched=files) for offset in PLACEBO_SEEDS
    )
    got: dict[str, Known] = {}

    def run(wanted: Sequence[Trial]) -> Iterator[Event]:
        for event in bench.run(wanted, share):
            if isinstance(event, Done):
                got[event.known.key] = event.known
            yield event

    yield from run([control, turned, first])
    placebos = [got[first.key]]
    if not _clear(got[control.key].outcome, got[turned.key].outcome, placebos[0].outcome):
        yield from run([second])
        placebos.append(got[second.key])
    yield Settled(finding.id, judge(finding.rule, got[control.key], got[turned.key], placebos))


def _clear(control: Outcome, turned: Outcome, placebo: Outcome) -> bool:
    """Whether one placebo is enough: the gain stands far out from what a seed does, or there is none to explain."""
    return gains(control, turned, [placebo]) or not gains(control, turned)


def verify(bench: Bench, finding: Suspected, files: Mapping[Path, bytes]) -> Iterator[Event]:
    """Run the program as it is, and with these files changed inside the sandbox: a control and a remedy that are done."""
    require_sandbox(bench.unsafe)
    watched = [Path(place.file) for place in finding.where]
    control = bench.trial("control", "control", watched=watched)
    yield from bench.run([control, bench.trial("remedy", "patched", files=files, watched=watched)])
