"""The bench on which the trials of one case are run: its command, what is left of the budget, and what is known from before."""

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
from _trainsleuth_inside.variables import VARIABLES
from trainsleuth.case import Case
from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Place
from trainsleuth.case.run_chart import RunChart
from trainsleuth.case.weights_files import written_by
from trainsleuth.trials import sandbox, trial
from trainsleuth.trials.knobs import Pointed
from trainsleuth.trials.measure import measure
from trainsleuth.trials.trial import Known, Setting, Trial

MOST_WINDOWS = 200
FEWEST_WINDOWS = 20
LEAST_SECONDS = 2.0
MORE_TIME = 1.5  # a trial that an earlier budget cut off is run again where this one allows so much more
BEYOND = 1.25  # a trial goes so much further than the step at which the run was known to be sick
START_UP = 5.0  # seconds until a program's first step, where the case does not tell
HANG_AFTER = (2.0, 20.0)
PAST_BREAK = 4  # times the windows after which the run broke: with another seed it may break later
SECONDS_PAST_HANG = 5.0
PAST_HANG = 20  # windows that a trial goes on beyond the place where the run stood still
MEMORY_SHARE = 0.8  # of what is free, for all trials that run side by side


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


class OutOfTime(Exception):
    """The budget is used up."""


class Executor(Protocol):
    """Where trials are computed: here, or one day on a cluster."""

    jobs: int  # so many side by side

    def run(self, wanted: Trial, folder: Path, seconds: float, cancel: threading.Event) -> sandbox.Ended: ...


@dataclass
class Here(Executor):
    """Trials on this machine, each in its sandbox.

    Side by side they ask for more threads than there are cores. Threads that wait spin then on a core that another trial needs, and a
    trial takes several times as long; waiting passively changes no number. A standstill is tried as it was: there the waiting is the matter.
    """

    command: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    unsafe: bool = False
    jobs: int = 1
    own_network: bool = False

    def run(self, wanted: Trial, folder: Path, seconds: float, cancel: threading.Event) -> sandbox.Ended:
        told = dict(self.environment)
        if self.jobs > 1 and not wanted.hang_after:
            told.setdefault("OMP_WAIT_POLICY", "passive")
        return trial.run(
            wanted, self.command, self.cwd, told, folder, seconds, unsafe=self.unsafe, cancel=cancel,
            memory=int(MEMORY_SHARE * _free_memory() / self.jobs), own_network=self.own_network,
        )  # fmt: skip


@dataclass
class Bench:
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
        stored = trial.load_all(self.case.trials)
        self.known = [known for known in stored if not (known.outcome.cut and MORE_TIME * known.outcome.seconds < self.left() / 4)]
        self._digests: dict[tuple[Path, ...], str] = {}
        self.chart = RunChart(self.case.facts)
        self.chart.refresh()
        main = max(self.chart.training(), key=lambda each: (each.windows, each.backwards), default=None)
        self.seen = 0 if main is None else main.windows or main.backwards
        loss = main.main_loss() if main is not None else None
        self.loss_at = None if loss is None else loss[0]
        self.loss_began = 0 if loss is None else loss[1].began
        self._written = written_by(self.case, main.window_times if main is not None else ())
        self._start = 0  # the window whose checkpoint a trial may start from
        self._numbers = max((int(known.id[1:]) for known in stored), default=0)
        self.jobs = self.jobs or (1 if _on_a_device(self.chart) else max(1, min(3, len(os.sched_getaffinity(0)))))
        self.asked = self.windows
        broke = any(each.crash is not None or each.quit is not None for each in self.chart.processes.values())
        far = self.seen * (PAST_BREAK if broke else 1)
        self.windows = self.windows or max(FEWEST_WINDOWS, min(far or MOST_WINDOWS, MOST_WINDOWS))
        ranks = any((each.process.get("world") or 1) > 1 for each in self.chart.processes.values())
        self.executor: Executor = Here(self.case.command, self.case.cwd, as_it_was(self.chart, self.environment), self.unsafe,
                                       self.jobs, own_network=ranks)  # fmt: skip

    def left(self) -> float:
        return self.deadline - time.monotonic()

    def reach(self, step: int | None) -> str:
        """Go as far as the step at which the run was known to be sick; if the budget does not allow that, why not."""
        if self.asked or step is None or step <= self.windows:
            return ""
        self.windows = min(int(step * BEYOND) + 1, max(self.seen, step))
        needed = START_UP + self.windows * self.seconds_a_window()
        affordable = self.left() * self.jobs / 4
        if needed <= affordable:
            return ""
        near = max((each.window for each in self._written if each.window <= step), default=0)
        from_there = int((step - near) * BEYOND) + FEWEST_WINDOWS
        if near and START_UP + from_there * self.seconds_a_window() <= affordable:
            self._start, self.windows = near, from_there
            return (
                f"the symptom was known at step {step:,}; the trials find the checkpoints that the program wrote until step {near:,}, and "
                "reach it if the program goes on from them by itself"
            )
        self.windows = max(FEWEST_WINDOWS, min(MOST_WINDOWS, self.seen or MOST_WINDOWS))
        return (
            f"the symptom was known at step {step:,}; a trial that gets there takes about {_duration(needed)}, and the budget allows "
            f"{_duration(max(affordable, 0))} a trial. These trials stop at step {self.windows}; --budget {_duration(needed * 4 / self.jobs)} "
            "would reach it, or start the program from a checkpoint of its own near that step"
        )

    def goes_on_to_the_end(self) -> bool:
        """Make trials as long as the run was, if they were shorter and the budget allows it."""
        return not self.asked and not self._start and self.windows < self.seen and not self.reach(self.seen)

    def include_the_end(self) -> None:
        """A trial that goes as far as the run did ends by itself: what is validated behind the last step is part of it."""
        if not self.asked and self.windows >= self.seen:
            self.windows = self.seen + 1

    def seconds_a_window(self) -> float:
        times = max((each.window_times for each in self.chart.training()), key=len, default=[])
        if len(times) < 2 or times[-1][0] <= times[0][0]:
            return 0.01
        return (times[-1][1] - times[0][1]) / (times[-1][0] - times[0][0])

    def hang_after(self) -> float:
        """How long a trial may show no sign of life: half of what the run took to come to its standstill, within limits."""
        still = self.chart.standstill()
        took = 0.0 if still is None else still.since - float(self.case.about.get("started") or still.since)
        return round(max(HANG_AFTER[0], min(0.5 * took, HANG_AFTER[1])), 1)

    def stood_at(self) -> int:
        """The windows that were made when the run stood still."""
        still = self.chart.standstill()
        return max((process.windows for process in still.processes), default=0) if still is not None else 0

    def trial(self, role: trial.Role, label: str, settings: Sequence[Setting] = (), *, files: Mapping[Path, bytes] | None = None,
              watched: Sequence[Path] = (), standing: bool = False, loss_at: Place | None = None) -> Trial:  # fmt: skip
        """A trial of this case; its key changes when a source file of the program changes."""
        sources = self._digest(tuple(watched))
        main = max(self.chart.training(), key=lambda each: each.backwards, default=ProcessChart())
        each_window = -(-main.backwards // main.windows) if main.windows else 1
        gone = tuple(each.path for each in self._written if not 0 < each.window <= self._start)
        if standing and not self.asked:
            past = self.stood_at()
            more = max(PAST_HANG, min(3 * past, MOST_WINDOWS, int(SECONDS_PAST_HANG / self.seconds_a_window())))  # by chance it stands later
            return Trial(role, label, tuple(settings), past + more, sources, files or {}, 2 * (past + more) * each_window,
                         self.hang_after(), past, gone, loss_at or self.loss_at)  # fmt: skip
        windows, backwards = (self.windows, 2 * self.windows) if each_window == 1 else (0, self.windows * each_window)  # of as much data each
        return Trial(role, label, tuple(settings), windows, sources, files or {}, backwards,
                     self.hang_after() if standing else 0.0, gone=gone, loss_at=loss_at or self.loss_at)  # fmt: skip

    def in_turns(self) -> bool:
        """Whether several optimizers step, each with a loss of its own."""
        charts = self.chart.training()
        return any(len(chart.losses) > 1 and sum(1 for each in chart.optimizers.values() if each.windows) > 1 for chart in charts)

    def loss_named_by(self, where: Sequence[Pointed]) -> Place | None:
        """The loss whose backward a finding points to: where several are trained in turns (a GAN), that one tells whether it is cured."""
        lines = [(place.file, place.line) for place in where]
        found = [at for chart in self.chart.training() for at in chart.losses if (at.file, at.line) in lines]
        return min(found, key=lambda at: lines.index((at.file, at.line)), default=None)

    def _digest(self, watched: tuple[Path, ...]) -> str:
        """Of the sources, once: what changes while trials run would make half of them another program."""
        if watched not in self._digests:
            script = [self.case.cwd / word for word in self.case.command if word.endswith(".py")]
            self._digests[watched] = trial.digest(self.case.cwd, self.case.folder, [*script, *watched])
        return self._digests[watched]

    def run(self, wanted: Sequence[Trial], share: int = 1) -> Iterator[Begun | Done]:
        """Run trials side by side with their share of the time that is left; those that are known are not run again."""
        before = {known.key: known for known in self.known}
        fresh = list({one.key: one for one in wanted if one.key not in before}.values())
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
                    if not (known.outcome.cut and known.outcome.kind == "hang"):
                        self.known.append(known)
                        trial.save(self.case.trials, known)
                    yield Done(known)
            finally:
                cancel.set()

    def _run_one(self, wanted: Trial, folder: Path, seconds: float, cancel: threading.Event) -> Known:
        ended = self.executor.run(wanted, folder, seconds, cancel)
        return Known(folder.name, wanted.role, wanted.label, wanted.key, measure(wanted, folder, ended))

    def _fresh_folder(self) -> Path:
        """T1, T2 and so on; a folder without a result beside it was cut short, and is used again."""
        self._numbers += 1
        folder = self.case.trials / f"T{self._numbers}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder


def as_it_was(chart: RunChart, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment, with the variables that change how torch computes as the run was given them; what the program sets, it sets again."""
    first = next((each.process["variables"] for each in chart.with_torch() if "variables" in each.process), None)
    if first is None:
        return dict(environment)
    names = [name for name in VARIABLES if not name.startswith("CUDA")]  # which devices are free is a matter of today
    return {
        **{name: value for name, value in environment.items() if name not in names},
        **{name: first[name] for name in names if name in first},
    }


def _on_a_device(chart: RunChart) -> bool:
    return Path("/dev/nvidia0").exists() and any(process.environment.get("cuda") for process in chart.with_torch())


def _free_memory() -> int:
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        return 0


def _duration(seconds: float) -> str:
    return f"{seconds:.0f}s" if seconds < 120 else f"{seconds / 60:.0f}m" if seconds < 7200 else f"{seconds / 3600:.1f}h"


def require_sandbox(unsafe: bool) -> None:
    reason = None if unsafe else sandbox.available()
    if reason is not None:
        raise sandbox.SandboxError(sandbox.refusal(reason))
