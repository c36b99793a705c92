"""Settles the suspected causes of a case: runs control, knob and placebo, and yields what happens as it happens.

Trials that the case already has are not run again. Whoever stops listening (Ctrl-C, a budget) keeps what is known: each trial is
stored when it ends.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

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
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def __post_init__(self) -> None:
        self.case.trials.mkdir(exist_ok=True)
        self.known = trial.load_all(self.case.trials)
        chart = RunChart(self.case.facts)
        chart.refresh()
        seen = max((process.windows for process in chart.training()), default=0)
        self.windows = self.windows or max(FEWEST_WINDOWS, min(seen or MOST_WINDOWS, MOST_WINDOWS))

    def left(self) -> float:
        return self.deadline - time.monotonic()

    def trial(self, role: trial.Role, label: str, settings: Sequence[Setting] = (), *, files: Mapping[Path, bytes] | None = None,
              watched: Sequence[Path] = ()) -> Trial:  # fmt: skip
        """A trial of this case; its key changes when the program's script or a file that the finding names changes."""
        script = [self.case.cwd / word for word in self.case.command if word.endswith(".py")]
        return Trial(role, label, tuple(settings), self.windows, trial.digest([*script, *watched]), files or {})

    def run(self, wanted: Trial, share: int) -> Iterator[Event]:
        """Run a trial with its share of the time that is left, or find it among those that are known."""
        before = next((known for known in self.known if known.key == wanted.key), None)
        if before is not None:
            yield Done(before, from_before=True)
            return
        seconds = self.left() / max(1, share)
        if seconds < LEAST_SECONDS:
            raise OutOfTime
        yield Begun(wanted.label, seconds)
        number = 1 + max((int(known.id[1:]) for known in self.known), default=0)
        folder = self.case.trials / f"T{number}"
        shutil.rmtree(folder, ignore_errors=True)
        ended = trial.run(wanted, self.case.command, self.case.cwd, self.environment, folder, seconds, unsafe=self.unsafe)
        outcome = measure(wanted, folder, ended)
        known = Known(f"T{number}", wanted.role, wanted.label, wanted.key, outcome)
        if outcome.kind != "hang":
            self.known.append(known)
            trial.save(self.case.trials, known)
        yield Done(known)


def settle(bench: Bench, findings: Sequence[Suspected]) -> Iterator[Event]:
    """Try the causes of these findings, one after the other, until all are settled or the time is over."""
    reason = None if bench.unsafe else sandbox.available()
    if reason is not None:
        raise sandbox.SandboxError(sandbox.refusal(reason))
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
    setting = Setting(knob.name, knob.options(finding.where))
    got: dict[str, Known] = {}

    def run(name: str, wanted: Trial, left: int) -> Iterator[Event]:
        for event in bench.run(wanted, share=left * share):
            if isinstance(event, Done):
                got[name] = event.known
            yield event

    yield from run("control", bench.trial("control", "control", watched=files), 3)
    yield from run("turned", bench.trial("knob", knob.label, [setting], watched=files), 2)
    placebos = []
    for seed in PLACEBO_SEEDS:
        setting = Setting("seed", {"offset": seed})
        yield from run("placebo", bench.trial("placebo", "other seed", [setting], watched=files), 1)
        placebos.append(got["placebo"])
        if _clear(got["control"].outcome, got["turned"].outcome, placebos[-1].outcome):
            break
    yield Settled(finding.id, judge(finding.rule, got["control"], got["turned"], placebos))


def _clear(control: Outcome, turned: Outcome, placebo: Outcome) -> bool:
    """Whether one placebo is enough: the gain stands far out from what a seed does, or there is none to explain."""
    return gains(control, turned, [placebo]) or not gains(control, turned)
