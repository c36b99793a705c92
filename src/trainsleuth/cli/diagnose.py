"""trainsleuth diagnose: judge a case again from its facts."""

from __future__ import annotations

import sys

import click

from trainsleuth.cli.output import console_on, write_report_file


@click.command("diagnose")
@click.argument("case")
@click.option("--json", "json_file", help="Write the report to this file (- for standard output).")
def command(case: str, json_file: str | None) -> None:
    """Judge a case again from its facts; also one that is still being written, or whose supervisor was killed."""
    from trainsleuth.case.folder import Case, open_case
    from trainsleuth.case.run_chart import RunChart
    from trainsleuth.report.json_report import as_json
    from trainsleuth.report.terminal import show_summary
    from trainsleuth.rules.arbiter import diagnose

    opened = open_case(case)
    chart = RunChart(opened.facts)
    chart.refresh()
    report = as_json(Case(opened.folder, {**opened.about, "probes_off": chart.probes_off()}), diagnose(chart))
    write_report_file(json_file, report)
    if json_file != "-":
        show_summary(console_on(sys.stdout), report, opened.cwd)
    sys.exit(1 if report["verdict"] == "sick" else 0)
