"""Writes what trials and patches have shown into a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trainsleuth.remedies.patch import Patch
from trainsleuth.remedies.verify import Checked
from trainsleuth.report.json_report import finding_from_json, shown
from trainsleuth.rules import wording
from trainsleuth.rules.kinds import Finding
from trainsleuth.trials.isolate import Isolated, words
from trainsleuth.trials.measure import mechanism_words
from trainsleuth.trials.trial import Known, Outcome
from trainsleuth.trials.verdict import Verdict

ASKED = "asked"
SEEN_IN_NUMBERS = ("ranks/diverged-weights", "ranks/same-data-on-every-rank")  # nothing stands still there
MARKS = {"control": "", "knob": "", "placebo": "placebo", "remedy": "patched"}


def findings_of(report: dict[str, Any], cwd: Path) -> list[Finding]:
    """The report's findings, their files as absolute paths."""
    found = [finding_from_json(row) for row in report["findings"]]
    for finding in found:
        for place in finding.where:
            place.file = str(cwd / place.file)
    return found


def asked_about(report: dict[str, Any]) -> Finding:
    """What stands for a finding where a run has none, and the user suspects something all the same: it is tried against the loss."""
    report["asked"] = [{
        "id": "Q1", "rule": ASKED, "severity": "note", "title": "the run has no finding; what you suspect is tried against its loss", "step": None,
        "rank": None, "certain": True, "symptoms": [], "symptom_texts": [], "where": [], "evidence": [], "causes": [], "remedies": [], "settle": "",
    }]  # fmt: skip
    return finding_from_json(report["asked"][0])


def _row_of(report: dict[str, Any], finding: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = [*report["findings"], *report.get("asked", [])]
    return next(row for row in rows if row["id"] == finding)


def add_verdict(report: dict[str, Any], finding: str, verdict: Verdict, statement: str = "") -> None:
    """Set the cause's status, and put its trials into the report in place of earlier ones.

    A suspicion that the finding did not have (a knob that was tried) becomes one more cause of it, with its status.
    """
    row = _row_of(report, finding)
    own = [cause for cause in row["causes"] if cause.get("rule", row["rule"]) == verdict.rule]
    if not own and verdict.status != "not applicable":
        own = [{"rule": verdict.rule, "statement": statement or verdict.rule, "status": "suspected", "trials": [], "settled_by": []}]
        row["causes"] += own
    for cause in own:
        cause["status"] = verdict.status if verdict.status != "not applicable" else "suspected"
        cause["why"] = verdict.why
        cause["trials"] = [known.id for known in verdict.trials]
    if row["severity"] == "note" and (verdict.rule, verdict.status) == (row["rule"], "confirmed"):  # it was a note because nobody knew
        row["severity"], report["verdict"] = "warning", "sick"
    report["trials"] = [trial for trial in report["trials"] if (trial.get("finding"), trial.get("cause")) != (finding, verdict.rule)]
    of_the_finding = verdict.rule == row["rule"]
    if of_the_finding:  # its table comes first, and whole; suspicions that were tried before keep what is theirs alone
        used = {known.id for known in verdict.trials}
        report["trials"] = [trial for trial in report["trials"] if trial.get("finding") != finding or trial.get("id") not in used]
    shown = {trial.get("id") for trial in report["trials"] if trial.get("finding") == finding}
    flips = verdict.status in ("confirmed", "workaround")
    table: list[dict[str, Any]] = []
    for known in verdict.trials:
        if known.id not in shown:
            mark = "flips" if flips and known.role == "knob" else MARKS[known.role]
            table.append({**trial_row(known, finding, row["rule"], mark), "cause": verdict.rule})
    said = f"{_subject(verdict)}{verdict.status}: {verdict.why}"
    table.append({"finding": finding, "cause": verdict.rule, "verdict": verdict.status, "line": said})
    report["trials"] = [*table, *report["trials"]] if of_the_finding else [*report["trials"], *table]


def add_isolated(report: dict[str, Any], table: Isolated) -> None:
    """Put the table of an isolation into the report, in place of an earlier one."""
    report["trials"] = [trial for trial in report["trials"] if (trial.get("finding"), trial.get("role")) != (table.finding, "isolated")]
    for row in table.rows:
        report["trials"].append({
            "finding": table.finding, "role": "isolated", "label": row.label, "outcome": row.kind, "seconds": row.seconds,
            "line": f"{row.label:<26} {words(row)}",
        })  # fmt: skip
    said = {"finding": table.finding, "role": "isolated", "label": "conclusion", "line": f"isolated: {table.conclusion}"}
    report["trials"].append(said)


def _subject(verdict: Verdict) -> str:
    kind, _, name = verdict.rule.partition("/")
    return f"{name} " if kind == "knob" else ""


def add_patch(report: dict[str, Any], finding: str, patch: Patch, cwd: Path, checked: Checked | None) -> None:
    """Put the patch first among the finding's remedies, with the trials that it was checked by."""
    row = _row_of(report, finding)
    others = [remedy for remedy in row["remedies"] if remedy["kind"] == "advice" and remedy["summary"] != patch.summary]
    diff = patch.diff(cwd)
    earlier = any(remedy["diff"] == diff and remedy["verified"] for remedy in row["remedies"] if diff)
    verified = earlier if checked is None else checked.ok  # not tried now: what an earlier trial of the same patch showed still holds
    new: dict[str, Any] = {"kind": patch.kind, "summary": patch.summary, "diff": diff, "verified": verified}
    if patch.lines:
        new["lines"] = [shown(line, cwd) for line in patch.lines]
    if patch.environment:
        new["environment"] = dict(patch.environment)
    row["remedies"] = [new, *others]
    if checked is None:
        return
    known = {trial.get("id") for trial in report["trials"] if trial.get("finding") == finding}
    for trial, line in zip(checked.trials, checked.lines[-len(checked.trials) :]):
        if trial.id not in known:
            report["trials"].append({**trial_row(trial, finding, row["rule"], MARKS[trial.role]), "line": line})
    report["trials"] = [trial for trial in report["trials"] if not (trial.get("finding") == finding and "remedy" in trial)]
    said = f"{'verified' if checked.ok else 'not verified'}: {checked.why}"
    report["trials"].append({"finding": finding, "remedy": patch.summary, "verified": checked.ok, "line": said})


def trial_row(known: Known, finding: str, rule: str, mark: str) -> dict[str, Any]:
    outcome = known.outcome
    learning = outcome.learning
    return {
        "id": known.id,
        "finding": finding,
        "role": known.role,
        "label": known.label,
        "outcome": outcome.kind,
        "why": outcome.why,
        "windows": outcome.windows,
        "seconds": outcome.seconds,
        "loss": None if learning is None else {"first": learning.first, "last": learning.last, "error": learning.last_error},
        "mechanism": outcome.mechanism.get(rule),
        "curve": [[to, round(mean, 6)] for to, mean in thinned(outcome.curve)],
        "line": trial_line(known.label, outcome, rule, mark),
    }


def trial_line(label: str, outcome: Outcome, rule: str, mark: str = "") -> str:
    """One line for people: the loss at both ends, the mechanism, and what the trial is."""
    learning = outcome.learning
    loss = outcome.kind if learning is None else f"loss {wording.loss(learning.first)} → {wording.loss(learning.last)}"
    if outcome.kind in ("crash", "nan", "not applicable"):
        loss = f"{outcome.kind}: {shortened(outcome.why)}" if outcome.why else outcome.kind
        return f"{label:<14} {loss}"
    if rule.startswith(("hang/", "ranks/")) and rule not in SEEN_IN_NUMBERS:
        pace = f", {1000 * outcome.pace:.0f} ms each" if outcome.pace else ""
        loss = f"{shortened(outcome.why) or outcome.kind}{pace}"
        return f"{label:<17} {loss:<33} {mechanism_words(rule, outcome):<23} {mark}".rstrip()
    return f"{label:<14} {loss:<24} {mechanism_words(rule, outcome):<31} {mark}".rstrip()


def thinned(curve: tuple[tuple[int, float], ...], most: int = 60) -> list[tuple[int, float]]:
    """At most so many points, the first and the last among them."""
    if len(curve) <= most:
        return list(curve)
    return [curve[round(index * (len(curve) - 1) / (most - 1))] for index in range(most)]


def shortened(text: str, most: int = 60) -> str:
    """The beginning of a message: a table of trials repeats it."""
    first = text.strip().splitlines()[0] if text.strip() else ""
    return first if len(first) <= most else f"{first[: most - 2].rstrip()} …"
