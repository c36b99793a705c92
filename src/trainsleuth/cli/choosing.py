"""Which findings a command is about, and where its trials run."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from trainsleuth.cli.output import stop

if TYPE_CHECKING:
    from trainsleuth.case import Case
    from trainsleuth.rules.kinds import Finding
    from trainsleuth.trials.settle import Bench

UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


def chosen(findings: list[Finding], name: str | None, able: Callable[[Finding], bool]) -> list[Finding]:
    """The finding with this id or rule; without a name, all that are more than a note and that something can be done for.

    Where there is no such finding, notes on what could keep a loss from falling: a trial tells whether it does.
    """
    if name is None:
        loud = [finding for finding in findings if finding.severity != "note"]
        return [finding for finding in loud or filter(_may_be_why, findings) if able(finding)]
    found = [finding for finding in findings if name.lower() in (finding.id.lower(), finding.rule, finding.rule.split("/")[-1])]
    if not found:
        known = ", ".join(f"{finding.id} {finding.rule}" for finding in findings)
        stop(f"the case has no finding {name}. It has: {known or 'none'}.")
    return found


def _may_be_why(note: Finding) -> bool:
    from trainsleuth.rules.catalogue import rule_named

    rule = rule_named(note.rule)
    return rule is not None and not rule.last_resort and "stall/flat-loss" in rule.explains


def seconds(text: str) -> float:
    """The seconds of `90`, `90s`, `5m`, `1.5h`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip().lower())
    if match is None or float(match[1]) <= 0:
        stop(f"{text} is no length of time; write 90s, 5m or 1h.")
    return float(match[1]) * UNITS[match[2]]


def bench_for(case: Case, budget: str, windows: int | None, unsafe: bool) -> Bench:
    from trainsleuth.trials.settle import Bench

    if not case.cwd.is_dir():
        stop(f"the working folder of the run, {case.cwd}, is gone: the program cannot be run again.")
    return Bench(case, time.monotonic() + seconds(budget), unsafe, windows or 0)
