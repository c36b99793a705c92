"""Runs of two kinds with the same seeds: how they are named, how long they go, and how their outcomes are gathered."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

from trainsleuth.trials.bench import Bench, Done
from trainsleuth.trials.settle import SEEDS, Event, Note
from trainsleuth.trials.trial import Known, Role, Setting, Trial

MOST_SEEDS = len(SEEDS) + 1
Events = Generator[Event, None, None]


def seeds(count: int) -> tuple[int | None, ...]:
    """The program's own seed, and others."""
    return (None, *SEEDS)[:count]


def with_seed(
    bench: Bench, label: str, settings: Sequence[Setting], seed: int | None, files: Mapping[Path, bytes] | None = None
) -> Trial:
    other = [] if seed is None else [Setting("seed", {"offset": seed})]
    role: Role = "remedy" if files else "knob" if settings else "placebo" if other else "control"
    again = f", seed {SEEDS.index(seed) + 2}" if seed is not None else ""
    return bench.trial(role, label + again, [*settings, *other], files=files)


def collect(bench: Bench, wanted: Sequence[Trial], got: dict[str, Known], share: int = 1) -> Events:
    """Run trials, and keep what came out under their keys."""
    for event in bench.run(wanted, share):
        if isinstance(event, Done):
            got[event.known.key] = event.known
        yield event


def long_enough(bench: Bench, trials: int) -> Events:
    """A score comes at the end of a run: trials go all the way if the time allows so many."""
    if bench.asked or not bench.seen:
        return
    about = bench.case.about
    needed = trials * (float(about.get("ended") or 0) - float(about.get("started") or 0)) / bench.jobs
    if needed <= bench.left():
        bench.windows = 2 * bench.seen
    else:
        yield Note(f"whole runs would take about {needed / 60:.0f} minutes, which the budget does not allow: trials end after {bench.windows} steps, "
                   "and what the program measures later is not seen")  # fmt: skip
