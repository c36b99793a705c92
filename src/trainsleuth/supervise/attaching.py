"""Looks at a process that is already running, ours or not: two looks, its stacks, and what the rules say of them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainsleuth import __version__
from trainsleuth.case.folder import Case, create_case, write_json
from trainsleuth.case.run_chart import SUPERVISOR, RunChart
from trainsleuth.case.standstill import Standstill, to_fact, users_line
from trainsleuth.report.json_report import as_json
from trainsleuth.rules.arbiter import diagnose
from trainsleuth.supervise.life import Judgement, judge
from trainsleuth.supervise.processes import PROC, below, environment_of, look
from trainsleuth.supervise.standstill import can_look, see


class AttachError(Exception):
    """Why a process cannot be looked at, in a sentence."""


def attach(pid: int, folder: Path | None) -> tuple[Case, dict[str, Any], list[str]]:
    """The case that was made, its report, and lines for the user about a process that is alive."""
    _must_be_ours(pid)
    known = environment_of(pid)
    beats = Path(known["TRAINSLEUTH_BEATS"]) if "TRAINSLEUTH_BEATS" in known else None

    def pids() -> list[int]:
        return below([pid], but=[os.getpid()])

    found = _judge_twice(pids, beats)
    still = see(pids(), beats, 0.0, found.spinning, attached=True)
    if not any(process.threads for process in still.processes):
        raise AttachError(f"the stacks of process {pid} cannot be read: {_why(still)}.")
    process = look(pid)
    case = create_case(
        list(process.command) if process is not None else [str(pid)], Path.cwd(), folder, trainsleuth=__version__, pid=pid
    )
    if found.life == "none":
        _write(case, "standstill", still)
    facts = Path(known["TRAINSLEUTH_CASE"]) / "facts" if "TRAINSLEUTH_CASE" in known else None
    chart = RunChart(case.facts)
    if facts is not None and facts.is_dir():
        chart = RunChart(facts)  # it is watched already: what it said of itself helps
        chart.refresh()
        chart.standstills = []
        if found.life == "none":
            chart.standstills = [still]
    chart.refresh()
    case = case.update(exit={"kind": "running", "code": None}, ended=time.time())
    report = as_json(case, diagnose(chart))
    if found.life != "none":
        report["findings"] = [finding for finding in report["findings"] if not finding["rule"].startswith(("hang/", "ranks/"))]
    report["verdict"] = "sick" if report["findings"] else "unsure"
    report["why_unsure"] = "" if report["findings"] else f"process {pid} is alive: {found.why}"
    write_json(case.folder / "report.json", report)
    return case, report, _alive(still, found) if found.life != "none" else _doubt(found)


def _judge_twice(pids: Callable[[], list[int]], beats: Path | None) -> Judgement:
    """A weak sign of life that holds others up, both times, is none; what it was is kept, to be said. A loop that sleeps is only slow."""
    found = judge(pids, beats)
    if found.life == "weak" and found.holds_up:
        found = judge(pids, beats)
        if found.life == "weak" and found.holds_up:
            return replace(found, life="none")
    return found


def _must_be_ours(pid: int) -> None:
    if not can_look():
        raise AttachError("attach needs /proc, which only Linux has.")
    process = look(pid)
    if process is None:
        raise AttachError(f"there is no process {pid}.")
    if os.geteuid() not in (0, (PROC / str(pid)).stat().st_uid):
        raise AttachError(f"process {pid} belongs to another user.")
    if not any(found is not None and found.is_python for found in map(look, below([pid]))):
        raise AttachError(f"process {pid} is not Python, and neither is any process below it.")


def _why(still: Standstill) -> str:
    return next((process.missing for process in still.processes if process.missing), "it ended")


def _write(case: Case, kind: str, still: Standstill) -> None:
    line = json.dumps({"k": kind, "t": time.time(), **to_fact(still)})
    (case.facts / f"{SUPERVISOR}.jsonl").write_text(line + "\n", encoding="utf-8")


def _doubt(found: Judgement) -> list[str]:
    return [f"It may be slow rather than stuck: {found.why}, at the same line each time. Attach again later to be sure."] if found.why else []


def _alive(still: Standstill, found: Judgement) -> list[str]:
    """Of a process that is not stuck: what it is doing."""
    lines = [f"It is alive: {found.why}."]
    for process in still.python():
        for thread in process.threads:
            at = users_line(thread)
            if at is not None:
                doing = "runs" if thread.state == "R" else f"waits{f' in {thread.waits_in}' if thread.waits_in else ''}"
                lines.append(
                    f"  process {process.pid}, {thread.name or thread.tid}: {doing}  {at.file}:{at.line} in {at.function}"
                )
    return lines
