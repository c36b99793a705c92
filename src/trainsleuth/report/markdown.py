"""The report as Markdown, ready to be filed as an issue."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from trainsleuth.case.folder import Case


def as_markdown(case: Case, report: dict[str, Any]) -> str:
    started = time.strftime("%Y-%m-%d %H:%M", time.localtime(case.about.get("started", 0)))
    findings = report["findings"]
    title = findings[0]["title"] if findings else f"{Path(case.name).name}: {report['verdict']}"
    lines = [
        "---", f'title: "{_quoted(title)}"', f'date: "{started}"', "type: bug_report", "category: training",
        f"status: {report['verdict']}", f'version: "{case.about.get("trainsleuth", "")}"',
        f"tags: [{', '.join(sorted({f['rule'] for f in findings}))}]", "---", "",
        f"# {title}", "",
        f"`{' '.join(case.command)}` was **{report['verdict']}**" + (f": {report['why_unsure']}" if report["why_unsure"] else "."), "",
    ]  # fmt: skip
    for finding in findings:
        lines += _finding(finding, [t for t in report["trials"] if t.get("finding") == finding["id"]])
    if report["abstained"]:
        lines += ["## What could not be judged", ""]
        lines += [f"- `{row['rule']}`: needs {row['missing']}" for row in report["abstained"]] + [""]
    lines += ["## Environment", ""]
    lines += [f"- {key}: {value}" for key, value in _environment(case).items()]
    return "\n".join(lines) + "\n"


def _finding(finding: dict[str, Any], trials: list[dict[str, Any]]) -> list[str]:
    lines = [f"## {finding['id']} {finding['title']}", "", f"Rule `{finding['rule']}`, {finding['severity']}"
             + (f", step {finding['step']:,}" if finding["step"] is not None else ""), ""]  # fmt: skip
    if finding["where"]:
        lines += ["| line | code | |", "|---|---|---|"]
        lines += [
            f"| {w['file']}:{w['line']} | `{w['code'].replace('|', chr(92) + '|')}` | {w['note']} |" for w in finding["where"]
        ] + [""]
    lines += ["### Evidence", "", *[f"- {text}" for text in finding["evidence"]], ""]
    for text in finding["symptom_texts"]:
        lines += [f"Symptom: {text}", ""]
    lines += ["### Cause", ""]
    lines += [f"- {cause['statement']} (**{cause['status']}**)" for cause in finding["causes"]] or ["- not known"]
    lines.append("")
    if trials:
        lines += ["### Proof", "", "```", *[str(t.get("line", "")) for t in trials], "```", ""]
    if finding["remedies"]:
        lines += ["### Fix", ""]
        for remedy in finding["remedies"]:
            lines.append(f"- {remedy['summary']}" + (" (verified)" if remedy["verified"] else ""))
            if remedy["diff"]:
                lines += ["", "```diff", remedy["diff"].rstrip(), "```"]
        lines.append("")
    return lines


def _environment(case: Case) -> dict[str, Any]:
    keys = ("python", "torch", "platform", "git", "trainsleuth")
    return {key: case.about[key] for key in keys if case.about.get(key)}


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
