"""The report as Markdown: the bug report that a person would write after an afternoon, ready to be filed as an issue."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trainsleuth.case.folder import Case
from trainsleuth.report.redact import redacted

Row = dict[str, Any]
CATEGORIES = {
    "stall": "training does not learn", "nan": "numerics", "precision": "numerics", "crash": "crash", "autograd": "crash", "hang": "standstill",
    "ranks": "distributed training", "data": "data", "cache": "data", "logging": "logging", "schedule": "learning rate", "mode": "training mode",
    "speed": "speed", "memory": "memory", "compile": "compilation", "validation": "validation", "checkpoint": "checkpoints",
}  # fmt: skip
PROOF = {
    "confirmed": "**Confirmed** by experiment.",
    "refuted": "**Refuted** by experiment: this is not the cause.",
    "workaround": "**A workaround, not the cause**: it changes the outcome without touching the suspected mechanism.",
    "inconclusive": "**Inconclusive**: the experiments did not settle it.",
}
MOST_ABSTAINED = 30


def as_markdown(case: Case, report: Row, redact: bool = False) -> str:
    text = "\n".join([*_front_matter(case, report), *_body(case, report)]) + "\n"
    text = re.sub(r"\n{3,}", "\n\n", text)
    return redacted(text, case.cwd if case.about.get("cwd") else None) if redact else text


def _front_matter(case: Case, report: Row) -> list[str]:
    """The blank line before the end keeps GitHub from taking it all for a headline."""
    rules = list(dict.fromkeys(finding["rule"] for finding in report["findings"]))
    family = rules[0].partition("/")[0] if rules else ""
    return [
        "---", f'title: "{_quoted(_title(case, report))}"', f'date: "{_date(case)}"', 'type: "bug_report"',
        f'category: "{CATEGORIES.get(family, "training")}"', f'status: "{_status(report)}"', 'version: "1.0"',
        f"tags: [{', '.join(repr(tag) for tag in ['bug_report', *rules])}]", "", "---", "",
    ]  # fmt: skip


def _title(case: Case, report: Row) -> str:
    if report["findings"]:
        return _upper(report["findings"][0]["title"])
    return {"healthy": "No fault was found", "unsure": "It could not be judged"}.get(str(report["verdict"]), str(report["verdict"]))


def _date(case: Case) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(case.about.get("started") or time.time()))


def _status(report: Row) -> str:
    loud = [finding for finding in report["findings"] if finding["severity"] != "note"]
    if not loud:
        return "no fault found" if report["verdict"] == "healthy" else "needs information"
    if all(any(remedy["verified"] for remedy in finding["remedies"]) for finding in loud):
        return "fix verified"
    if any(cause["status"] == "confirmed" for finding in loud for cause in finding["causes"]):
        return "cause confirmed"
    return "open"


def _body(case: Case, report: Row) -> Iterator[str]:
    findings = report["findings"]
    yield from (f"# {_title(case, report)}", "", "## Executive summary", "", *_summary(case, report), "")
    single = len(findings) == 1
    for number, finding in enumerate(findings, 1):
        if not single:
            yield from (f"## Issue {number}: {_upper(finding['title'])}", "")
        trials = [trial for trial in report["trials"] if trial.get("finding") == finding["id"]]
        yield from _finding(case, finding, trials, "##" if single else "###")
    yield from _follow_up(case, report)
    yield from _environment(case, report)


def _summary(case: Case, report: Row) -> Iterator[str]:
    findings = report["findings"]
    yield _what_was_looked_at(case, report) + " " + _how_it_ended(report)
    if not findings:
        yield from (
            "",
            _upper(report["why_unsure"]) + "." if report["why_unsure"] else "Nothing was found that is wrong with it.",
        )
        return
    first = findings[0]
    if first["causes"]:
        at = f" (`{first['where'][0]['file']}:{first['where'][0]['line']}`)" if first["where"] else ""
        yield from ("", f"Most important: {_text(first['causes'][0]['statement'].rstrip('.'))}{at}.")
    yield ""
    yield from ("| | finding | severity | cause | fix |", "|---|---|---|---|---|")
    for finding in findings:
        yield f"| {finding['id']} | {_cell(finding['title'])} | {finding['severity']} | {_cause_word(finding)} | {_fix_word(finding)} |"


def _what_was_looked_at(case: Case, report: Row) -> str:
    sources = report.get("sources") or []
    if sources:
        shown = ", ".join(f"`{Path(str(row['path'])).name}` ({row['format']})" for row in sources[:4])
        more = f" and {len(sources) - 4} more" if len(sources) > 4 else ""
        return f"This report was made from what the run left behind: {shown}{more}."
    return f"`{shlex.join(case.command)}` was run under TrainSleuth." if case.command else "A run was observed by TrainSleuth."


def _how_it_ended(report: Row) -> str:
    ended = report.get("exit") or {}
    words = {
        "ok": "It ran to its end.", "crash": f"It ended with an error (exit code {ended.get('code')}).",
        "killed": f"It was killed ({ended.get('signal', 'by a signal')}).", "hang": "It stood still and was ended.",
        "running": "It was still running.",
    }  # fmt: skip
    return words.get(str(ended.get("kind")), "")


def _cause_word(finding: Row) -> str:
    status = finding["causes"][0]["status"] if finding["causes"] else ""
    if not status:
        return "not known"
    return "seen directly" if status == "suspected" and finding.get("certain", True) else status


def _fix_word(finding: Row) -> str:
    if any(remedy["verified"] for remedy in finding["remedies"]):
        return "verified"
    return "proposed" if finding["remedies"] else "none yet"


def _finding(case: Case, finding: Row, trials: list[Row], level: str) -> Iterator[str]:
    yield from (f"{level} Problem", "", f"{_upper(finding['title'])}{_when(finding)}.", "")
    for text in finding["symptom_texts"]:
        yield from (f"What it looks like from outside: {text}.", "")
    if finding["where"]:
        yield from ("| line | code | |", "|---|---|---|")
        for where in finding["where"]:
            yield f"| `{where['file']}:{where['line']}` | {_code(where['code'])} | {_cell(where['note'])} |"
        yield ""
    if finding["evidence"]:
        yield from (f"{level} Evidence", "", *[f"- {_text(line)}" for line in finding["evidence"]], "")
    yield from _root_cause(case, finding, trials, level)
    yield from _fix(case, finding, level)
    yield from _verification(case, finding, trials, level)


def _when(finding: Row) -> str:
    rank = f", rank {finding['rank']}" if finding.get("rank") is not None else ""
    return (
        f" (known at step {finding['step']:,}{rank})"
        if finding["step"] is not None
        else f" (rank {finding['rank']})"
        if rank
        else ""
    )


def _root_cause(case: Case, finding: Row, trials: list[Row], level: str) -> Iterator[str]:
    yield from (f"{level} Root cause", "")
    if not finding["causes"]:
        yield from ("Not known. This is a symptom; no rule has named what causes it.", "")
    for cause in finding["causes"]:
        yield from (f"{_upper(cause['statement'])}.", "", _proof_status(case, finding, cause), "")
    lines = [str(trial["line"]) for trial in trials if trial.get("line") and trial.get("role") != "remedy"]
    if lines:
        yield from ("```text", *lines, "```", "")
    if finding.get("rule"):
        yield from (f"Rule `{finding['rule']}`, {finding['severity']}. `trainsleuth explain {finding['rule']}` says more.", "")


def _proof_status(case: Case, finding: Row, cause: Row) -> str:
    count = len(cause["trials"])
    if cause["status"] in PROOF:
        return (
            PROOF[cause["status"]]
            + (f" {count} trials, below." if count else "")
            + (f" {_upper(str(cause['why']))}." if cause.get("why") else "")
        )
    if finding.get("certain", True):
        return "Proof status: **seen directly**. The evidence above is the mechanism itself; no experiment was made."
    settle = finding.get("settle") or (f"`trainsleuth prove {case.name} {finding['id']}`" if cause["settled_by"] else "")
    return "Proof status: **suspected**." + (f" What would settle it: {settle}." if settle else "")


def _fix(case: Case, finding: Row, level: str) -> Iterator[str]:
    verified = any(remedy["verified"] for remedy in finding["remedies"])
    yield from (f"{level} Fix ({'verified' if verified else 'proposed' if finding['remedies'] else 'none yet'})", "")
    if not finding["remedies"]:
        yield from ("None is known yet.", "")
    for remedy in finding["remedies"]:
        yield f"- {_text(remedy['summary'])}" + (" **(verified)**" if remedy["verified"] else "")
        if remedy["diff"]:
            yield from ("", "```diff", remedy["diff"].rstrip(), "```", "")
    yield ""


def _verification(case: Case, finding: Row, trials: list[Row], level: str) -> Iterator[str]:
    yield from (f"{level} Verification", "")
    lines = [str(trial["line"]) for trial in trials if trial.get("line") and trial.get("role") == "remedy"]
    if lines:
        yield from ("The patched program was run again:", "", "```text", *lines, "```", "")
    elif any(remedy["verified"] for remedy in finding["remedies"]):
        yield from ("The patched program was run again, and the symptom is gone.", "")
    elif any(remedy["diff"] for remedy in finding["remedies"]):
        yield from (
            f"Not done yet: `trainsleuth fix {case.name} {finding['id']} --verify` runs the patched program beside this one.",
            "",
        )
    else:
        yield from ("Not done yet: run the changed program under `trainsleuth run`; the finding must not come again.", "")


def _follow_up(case: Case, report: Row) -> Iterator[str]:
    yield from ("## Follow-up", "")
    tasks = [task for finding in report["findings"] for task in _tasks(case, finding)]
    yield from tasks or ["- [ ] Nothing is left to do."]
    yield ""
    if report["abstained"]:
        yield from (f"<details><summary>What could not be judged ({len(report['abstained'])})</summary>", "")
        for row in report["abstained"][:MOST_ABSTAINED]:
            yield f"- `{row['rule']}` needs {_text(row['missing'])}"
        if len(report["abstained"]) > MOST_ABSTAINED:
            yield f"- and {len(report['abstained']) - MOST_ABSTAINED} more"
        yield from ("", "</details>", "")


def _tasks(case: Case, finding: Row) -> Iterator[str]:
    name = finding["id"]
    status = finding["causes"][0]["status"] if finding["causes"] else ""
    diff = any(remedy["diff"] for remedy in finding["remedies"])
    verified = any(remedy["verified"] for remedy in finding["remedies"])
    if not status:
        yield f"- [ ] {name}: find the cause"
    elif status == "suspected" and not finding.get("certain", True):
        yield f"- [ ] {name}: settle the cause"
    if diff:
        yield f"- [ ] {name}: apply the diff" + ("" if verified else ", and verify it")
    elif finding["severity"] != "note":
        yield f"- [ ] {name}: make the change, and run it again under `trainsleuth run`"
    else:
        yield f"- [ ] {name}: decide whether it is meant so"


def _environment(case: Case, report: Row) -> Iterator[str]:
    about = {
        "command": f"`{shlex.join(case.command)}`" if case.command else "", "Python": case.about.get("python"), "torch": case.about.get("torch"),
        "platform": case.about.get("platform"), "git": _git(case.about.get("git")), "TrainSleuth": case.about.get("trainsleuth"),
        "case": f"`{report['case']}`" if report.get("case") else "",
    }  # fmt: skip
    yield from ("## Environment", "", "| | |", "|---|---|")
    yield from (f"| {key} | {_cell(str(value))} |" for key, value in about.items() if value)
    for row in report.get("sources") or []:
        yield f"| read | `{_cell(str(row['path']))}`: {row['format']}, {row.get('points', 0):,} values |"
    for row in report.get("probes_off") or []:
        yield f"| probe off | {_cell(row['probe'])}: {_cell(row['why'])} |"


def _git(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items() if item)
    return str(value or "")


def _upper(text: str) -> str:
    """With a capital letter at the beginning, unless that is a name from the code; without a full stop."""
    first = text.split(" ", 1)[0]
    plain = first.isalpha() and first.islower()
    return (text[:1].upper() + text[1:] if plain else text).rstrip(".")


def _text(text: str) -> str:
    """What GitHub would take for markup is left as it is meant: names with underscores and angle brackets go into code marks."""
    words = re.split(r"(`[^`]*`)", text.replace("\n", " "))
    return "".join(
        word if word.startswith("`") else re.sub(r"(?<![`\w])(\w*(?:__\w+|<\w[^>\s]*>)[\w.]*)", r"`\1`", word) for word in words
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _code(text: str) -> str:
    if not text:
        return ""
    marks = "``" if "`" in text else "`"
    return f"{marks}{_cell(text)}{marks}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
