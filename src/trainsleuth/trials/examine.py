"""Examines what went wrong at one step: runs the program again in the sandbox, with a deep instrument armed near that step.

The result is written into the case as a fact of the process that it is about, so that rules read it like any other.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _trainsleuth_inside.facts import plain
from _trainsleuth_inside.secrets import HIDDEN
from trainsleuth.case import Case
from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.reading import FactFollower
from trainsleuth.case.run_chart import SUPERVISOR, RunChart
from trainsleuth.case.weights_files import written_by
from trainsleuth.rules.autograd_errors import error_of
from trainsleuth.rules.origins import recovered, stopped_by_itself, unscaled_and_bad
from trainsleuth.trials import sandbox, trial
from trainsleuth.trials.trial import Setting, Trial

AFFORDED = 120.0  # seconds that an examination may take without being asked for
SLOWER = 20.0  # by how much an instrument may slow a window down
START = 6.0  # seconds to start a program again, at least
MARGIN = 1.5
AT_MOST = 3.0  # times what was planned: a machine that is busy now is slower than it was
REASONS = {
    "bad-number": "find the operation that made the first bad number",
    "bad-gradient": "find the operation that made the first gradient that is not finite",
    "mutations": "find what changed a tensor, or keeps a graph, that backward needs",
    "functions": "check the backward of its own autograd Functions in the first steps",
}


@dataclass(frozen=True)
class Examination:
    """What to look for, in which windows, in which process, and how long that will take."""

    what: str  # one of the reasons
    first: int
    last: int
    process: ProcessChart
    seconds: float


Say = Callable[[str], None]


def wanted(run: RunChart) -> Examination | None:
    """The examination that this run calls for, if any."""
    for process in [*run.training(), *run.crashes()]:
        if process.compiled is not None or any(fact.get("result") != "not examined" for fact in process.examined):
            continue
        span = process.bad_between
        if span is not None and not recovered(process):
            return _planned("bad-number", process, *span)
        if process.silent_changes:
            first = int(process.silent_changes[0].get("window") or 0)
            return _planned("mutations", process, first, first + 2)
        crash = process.crash
        if error_of(crash) in ("modified-in-place", "graph-freed"):
            return _planned("mutations", process, process.windows - 1, process.windows + 1)
        if stopped_by_itself(process):
            return _planned("bad-number", process, process.windows - 1, process.windows + 1)
        window = unscaled_and_bad(process)
        if window is not None:
            return _planned("bad-gradient", process, window, window + 2)
        if process.functions and process.backwards:
            return _planned("functions", process, 1, 8)
    return None


def _planned(what: str, process: ProcessChart, first: int, last: int) -> Examination:
    """Short runs are looked at from their beginning on: then it does not matter if the bad step comes earlier this time."""
    started, now = process.process.get("t") or 0.0, process.latest
    trained = now - (process.trained_from or now)
    if not process.windows:  # no optimizer that we know steps: looked at from the beginning on, as far as the first bad backward
        part = (process.bad_backward or process.backwards) / max(1, process.backwards)
        return Examination(what, 1, last + 2, process, START + MARGIN * (now - started) + SLOWER * trained * part)
    each = trained / process.windows
    if last * each * SLOWER < AFFORDED / 4:
        first = 1
    first = max(1, first)
    before = now - started - trained + each * min(last, process.windows)
    return Examination(what, first, last + 2, process, START + MARGIN * before + SLOWER * each * (last + 2 - first))


def examine_if_wanted(case: Case, run: RunChart, say: Say, limit: float = AFFORDED, *, unsafe: bool = False) -> bool:
    """Examine what the run calls for, within the limit; what prevents it is a fact too. False if it calls for nothing."""
    examination = wanted(run)
    if examination is None:
        return False
    reason = _prevented(case, examination, limit, unsafe)
    allowed = min(limit, AT_MOST * examination.seconds)
    if reason:
        note(case, examination, {"result": "not examined", "why": reason})
    else:
        say(
            f"running the program again in a sandbox, to {REASONS[examination.what]} "
            f"(at most {allowed:.0f} s; Ctrl-C skips this)"
        )
        note(case, examination, _examine(case, examination, allowed, unsafe))
    run.refresh()
    return True


def _prevented(case: Case, examination: Examination, limit: float, unsafe: bool) -> str:
    if HIDDEN in " ".join(case.command):
        return "the command line held a secret, which the case does not keep, so the program cannot be run again"
    if examination.seconds > limit:
        return f"it would take about {examination.seconds:.0f} s to get there again; trainsleuth prove {case.name} takes the time"
    reason = None if unsafe else sandbox.available()
    return f"there is no sandbox to run the program again in: {reason}" if reason else ""


def _examine(case: Case, examination: Examination, allowed: float, unsafe: bool) -> dict[str, Any]:
    gone = tuple(each.path for each in written_by(case, examination.process.window_times))
    again = Trial("control", "examination", settings_of(examination), windows=examination.last + 1, sources="", gone=gone)
    folder = case.folder / "examination"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    began = time.monotonic()
    cancel = threading.Event()
    try:
        ended = trial.run(again, case.command, case.cwd, dict(os.environ), folder, allowed, unsafe=unsafe, cancel=cancel)
    except KeyboardInterrupt:
        return {"result": "not examined", "why": "it was interrupted"}
    except sandbox.SandboxError as problem:
        return {"result": "not examined", "why": str(problem)}
    result = result_of(folder, examination)
    if ended.kind == "time" and result["result"] == "not reproduced":
        why = f"the second run did not get there within {allowed:.0f} s; trainsleuth prove {case.name} tries again"
        result = {"result": "not examined", "why": why}
    return {**result, "took": round(time.monotonic() - began, 1)}


def result_of(folder: Path, examination: Examination) -> dict[str, Any]:
    """The last word of the instrument, from the facts of the second run."""
    found = list(_results(folder, examination))
    return found[-1] if found else {"result": "not reproduced", "why": "the second run ended without going wrong in the same way"}


def _results(folder: Path, examination: Examination) -> Iterator[dict[str, Any]]:
    """What the instrument wrote, the last word last; of several ranks the one in question."""
    ranks: dict[str, Any] = {}
    found: list[tuple[str, Mapping[str, Any]]] = []
    for name, fact in FactFollower(folder / "facts").news():
        if fact["k"] == "process":
            ranks[name] = fact.get("rank")
        elif fact["k"] == "examined" and fact.get("result") != "nothing":
            found.append((name, fact))
    rank = examination.process.process.get("rank")
    for _, result in sorted(found, key=lambda pair: ranks.get(pair[0]) == rank):
        yield {key: value for key, value in result.items() if key not in ("k", "t")}


def settings_of(examination: Examination) -> tuple[Setting, ...]:
    """The random numbers of the run, and the instrument."""
    chance = examination.process.chance
    known = {key: chance[key] for key in ("torch", "python", "numpy") if chance.get(key) is not None}
    instrument = {"what": examination.what, "first": examination.first, "last": examination.last}
    return Setting("same-chance", known), Setting("examine", instrument)


def note(case: Case, examination: Examination, result: dict[str, Any]) -> None:
    """Add a fact to what is seen from outside."""
    about = {"k": "examined", "t": time.time(), "pid": examination.process.process.get("pid"), "how": "rerun",
             "looked_for": examination.what, **result}  # fmt: skip
    with (case.facts / f"{SUPERVISOR}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(plain(about)) + "\n")
