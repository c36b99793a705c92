"""The report for machines; its schema is docs/json.md, version 1."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from trainsleuth.case.folder import Case
from trainsleuth.rules.arbiter import Diagnosis
from trainsleuth.rules.kinds import Cause, Finding, Remedy, Where

SCHEMA = 1


def as_json(case: Case, diagnosis: Diagnosis, trials: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "case": case.name,
        "folder": str(case.folder),
        "exit": case.about.get("exit", {"kind": "unknown", "code": None}),
        "verdict": diagnosis.verdict,
        "why_unsure": diagnosis.why_unsure,
        "findings": [_finding(finding, case.cwd) for finding in diagnosis.findings],
        "abstained": [{"rule": a.rule, "missing": a.missing} for a in diagnosis.abstained],
        "probes_off": case.about.get("probes_off", []),
        "trials": trials or [],
    }


def _finding(finding: Finding, cwd: Path) -> dict[str, Any]:
    return {
        "id": finding.id,
        "rule": finding.rule,
        "severity": finding.severity,
        "title": finding.title,
        "step": finding.step,
        "rank": finding.rank,
        "certain": finding.certain,
        "symptoms": finding.symptoms,
        "symptom_texts": finding.symptom_texts,
        "where": [
            {"file": shown(w.file, cwd), "line": w.line, "code": w.code, "note": w.note} for w in finding.where
        ],
        "evidence": finding.evidence,
        "causes": [
            {"rule": c.rule, "statement": c.statement, "status": c.status, "trials": c.trials, "settled_by": c.settled_by}
            for c in finding.causes
        ],
        "remedies": [{"kind": r.kind, "summary": r.summary, "diff": r.diff, "verified": r.verified} for r in finding.remedies],
        "settle": finding.settle,
    }  # fmt: skip


def shown(file: str, cwd: Path) -> str:
    """A path as the user would type it from the working directory of the run."""
    try:
        relative = os.path.relpath(file, cwd)
    except ValueError:
        return file
    return file if relative.startswith(os.pardir) else relative


def finding_from_json(row: dict[str, Any]) -> Finding:
    """A finding as it stands in a report.json."""
    return Finding(
        id=row["id"], rule=row["rule"], severity=row["severity"], title=row["title"], step=row.get("step"), rank=row.get("rank"),
        symptoms=list(row.get("symptoms", [])), symptom_texts=list(row.get("symptom_texts", [])),
        where=[Where(w["file"], w["line"], w.get("code", ""), w.get("note", "")) for w in row.get("where", [])],
        evidence=list(row.get("evidence", [])),
        causes=[Cause(c.get("rule", row["rule"]), c["statement"], c["status"], list(c.get("trials", [])), list(c.get("settled_by", [])))
                for c in row.get("causes", [])],
        remedies=[Remedy(r["kind"], r["summary"], r.get("diff", ""), bool(r.get("verified"))) for r in row.get("remedies", [])],
        certain=bool(row.get("certain", True)), settle=str(row.get("settle", "")),
    )  # fmt: skip
