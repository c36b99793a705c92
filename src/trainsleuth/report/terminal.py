"""The report on a terminal: a tired engineer reads it at two in the morning."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from trainsleuth.report.json_report import shown
from trainsleuth.rules.kinds import Finding

COLOURS = {"critical": "bold red", "warning": "bold yellow", "note": "bold blue"}
STATUS = {"confirmed": "bold green", "refuted": "dim", "workaround": "yellow", "inconclusive": "yellow", "suspected": ""}


def show_finding(
    console: Console, finding: Finding, cwd: Path, case_name: str = "", trials: list[dict[str, Any]] | None = None
) -> None:
    width = max(60, min(console.width, 120))
    head = Text(f"{finding.id:<4}", style="bold")
    head.append(f"{finding.severity:<10}", style=COLOURS[finding.severity])
    head.append(finding.rule)
    status = next((cause.status for cause in finding.causes), "")
    proof = _proof_lines(trials or [])
    tried = any(trial.get("cause") == finding.rule for trial in trials or [])
    label = _status_words(finding, status, tried)
    gap = width - len(head.plain) - len(label)
    head.append(" " * max(2, gap))
    head.append(label, style=STATUS.get(status, ""))
    console.print(head, soft_wrap=True)
    _wrapped(console, finding.title, "    ", width, "bold")
    places = [(f"{shown(w.file, cwd)}:{w.line}", w.code, w.note) for w in finding.where]
    margin = max((len(p[0]) for p in places), default=0)
    for at, code, note in places:
        row = Text(f"    {at:<{margin}}  ", style="cyan")
        row.append(code[: max(20, width - margin - 8)], style="default")
        if note:
            if len(row.plain) + len(note) + 5 > width:
                console.print(row, soft_wrap=True)
                row = Text(" " * (margin + 6))
                row.append(f"← {note}", style="dim")
            else:
                row.append(f"   ← {note}", style="dim")
        console.print(row, soft_wrap=True)
    if places:
        console.print()
    for where in finding.where:
        if where.around:
            _source(console, where.around, where.line, width)
    for index, line in enumerate(finding.evidence):
        _labelled(console, "evidence" if index == 0 else "", line, width)
    for index, line in enumerate(finding.symptom_texts):
        _labelled(console, "symptom" if index == 0 else "", line, width)
    for index, line in enumerate(proof):
        _labelled(console, "proof" if index == 0 else "", line, width)
    if finding.settle:
        _labelled(console, "settle", finding.settle, width)
    for cause in finding.causes:
        if cause.status == "suspected" and cause.rule == finding.rule and not finding.settle and not tried:
            _labelled(console, "settle", _how_to_settle(finding, cause.settled_by, case_name), width)
    for index, remedy in enumerate(finding.remedies):
        text = remedy.summary + ("   (verified)" if remedy.verified else "")
        _labelled(console, "cure" if index == 0 else "", text, width)
        if remedy.diff:
            for line in remedy.diff.splitlines():
                style = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
                console.print(Text(f"               {line}", style=style), soft_wrap=True)
    console.print()


def _source(console: Console, lines: list[tuple[int, str]], line: int, width: int) -> None:
    """The line with its neighbours."""
    margin = min((len(text) - len(text.lstrip()) for _, text in lines if text.strip()), default=0)
    for number, text in lines:
        mark = ">" if number == line else " "
        style = "default" if number == line else "dim"
        console.print(Text(f"    {mark} {number:>5}  {text[margin:][: width - 15]}", style=style), soft_wrap=True)
    console.print()


def _status_words(finding: Finding, status: str, tried: bool) -> str:
    trials = len({trial for cause in finding.causes for trial in cause.trials})
    if status == "refuted" and all(cause.rule != finding.rule for cause in finding.causes):
        return f"its cause is not among what {trials} trials have tested"
    if status in ("confirmed", "refuted") and trials:
        return f"{status} by {trials} trials"
    if status == "suspected":
        untried = "no trial applies" if tried else "not yet tried"
        return f"seen directly, {untried}" if finding.certain else "suspected"
    return status


def _how_to_settle(finding: Finding, knobs: list[str], case_name: str) -> str:
    from trainsleuth.trials.knobs import knob_for

    knob = knob_for(finding.rule)
    if knob is not None:
        return f"trainsleuth prove {case_name} {finding.id}".replace("  ", " ") + f"   (turns the knob {knob.name})"
    if knobs:
        return f"a trial with the knob {knobs[0]} would"
    return (
        "the evidence above is the mechanism itself; no trial is needed"
        if finding.certain
        else "a closer look at the lines above"
    )


def _proof_lines(trials: list[dict[str, Any]]) -> list[str]:
    return [str(trial["line"]) for trial in trials if trial.get("line")]


def _wrapped(console: Console, text: str, indent: str, width: int, style: str = "") -> None:
    for line in textwrap.wrap(text, width - len(indent)) or [""]:
        console.print(Text(indent + line, style=style), soft_wrap=True)


def _labelled(console: Console, label: str, text: str, width: int) -> None:
    indent = " " * 15
    lines = textwrap.wrap(text, width - 15) or [""]
    first = Text(f"    {label:<11}", style="dim")
    first.append(lines[0], style="default")
    console.print(first, soft_wrap=True)
    for line in lines[1:]:
        console.print(Text(indent + line), soft_wrap=True)


def show_summary(console: Console, report: dict[str, Any], cwd: Path, brief: bool = False) -> None:
    """The last words of a run: verdict, findings, abstentions in one line, where to read on.

    `brief`: trials follow at once, and their summary says the rest.
    """
    from trainsleuth.report.json_report import finding_from_json

    findings = [finding_from_json(row) for row in report["findings"]]
    loud = [finding for finding in findings if finding.severity != "note"]
    console.print()
    style = {"healthy": "bold green", "sick": "bold red", "unsure": "bold yellow"}[report["verdict"]]
    line = Text("trainsleuth  ", style="bold")
    line.append(report["verdict"], style=style)
    line.append(f"   {_counted(loud, findings)}   {'in' if report.get('sources') else 'case'} {report['case']}")
    console.print(line, soft_wrap=True)
    if report["verdict"] == "unsure":
        _wrapped(console, report["why_unsure"], "    ", max(60, min(console.width, 120)))
    console.print()
    for finding in loud if brief else []:
        at = next((f"  at {shown(w.file, cwd)}:{w.line}" for w in finding.where), "")
        _wrapped(console, f"{finding.id:<4}{finding.severity:<10}{finding.rule}{at}", "", max(60, min(console.width, 120)))
        _wrapped(console, finding.title, "    ", max(60, min(console.width, 120)), "bold")
    if brief:
        console.print()
        return
    for finding in _proved_first(findings):
        own = [trial for trial in report["trials"] if trial.get("finding") == finding.id]
        show_finding(console, finding, cwd, report["case"], own)
    _show_sources(console, report)
    for row in report.get("probes_off", []):
        _wrapped(console, f"probe off: {row['probe']} ({row['why']})", "    ", max(60, min(console.width, 120)), "yellow")


def _proved_first(findings: list[Finding]) -> list[Finding]:
    """Where trials have confirmed one finding, those that they have refuted come last."""
    status = {finding.id: next((cause.status for cause in finding.causes), "") for finding in findings}
    if "confirmed" not in status.values():
        return findings
    return sorted(findings, key=lambda finding: status[finding.id] == "refuted")


def _show_sources(console: Console, report: dict[str, Any]) -> None:
    """What was read, what was not understood in it, and what was left out."""
    width = max(60, min(console.width, 120))
    for row in report.get("sources", [])[:12]:
        names = f"{row['names']} name{'s' if row['names'] != 1 else ''}"
        runs = f", {row['runs']} runs" if row["runs"] > 1 else ""
        held = f"{row['collectives']:,} collectives" if row.get("collectives") else f"{row['points']:,} values of {names}{runs}"
        _labelled(console, "read", f"{row['path']}: {row['format']}, {held}", width)
        for skip in row["skipped"][:4]:
            _labelled(console, "", f"not understood: {skip['what']} ({skip['count']:,}, the first at {skip['at']:,})", width)
    ignored = report.get("ignored", [])
    for row in ignored[:6]:
        _labelled(console, "ignored", f"{row['path']}: {row['why']}", width)
    if len(ignored) > 6:
        _labelled(console, "", f"and {len(ignored) - 6} more", width)


def _counted(loud: list[Finding], findings: list[Finding]) -> str:
    notes = len(findings) - len(loud)
    text = f"{len(loud)} finding{'s' if len(loud) != 1 else ''}"
    return text + (f", {notes} note{'s' if notes != 1 else ''}" if notes else "")
