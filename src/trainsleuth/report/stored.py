"""The report of a case as it was written, or made anew when the supervisor did not live to write it."""

from __future__ import annotations

import json
from typing import Any

from trainsleuth.case.folder import Case
from trainsleuth.case.run_chart import RunChart
from trainsleuth.report.json_report import SCHEMA, as_json
from trainsleuth.rules.arbiter import diagnose


def load_report(case: Case) -> dict[str, Any]:
    try:
        report = json.loads((case.folder / "report.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        report = None
    if isinstance(report, dict) and report.get("schema") == SCHEMA and isinstance(report.get("findings"), list):
        return report
    return judged_anew(case)


def judged_anew(case: Case) -> dict[str, Any]:
    """Judge a case from its facts; also one that is still being written, or whose supervisor was killed."""
    chart = RunChart(case.facts)
    chart.refresh()
    return as_json(Case(case.folder, {**case.about, "probes_off": chart.probes_off()}), diagnose(chart))
