"""trainsleuth prove: confirm or refute the suspected causes of a case."""

from __future__ import annotations

import sys
from typing import Any

import click

from trainsleuth.cli.output import console_on, stop, write_report_file


@click.command("prove")
@click.argument("case")
@click.argument("finding", required=False)
@click.option("--budget", default="5m", show_default=True, help="Stop after this time (90s, 5m, 1h); what is known is kept.")
@click.option("--windows", type=click.IntRange(5, 100_000), help="Steps per trial; by default as the run had, at most 200.")
@click.option("--json", "json_file", help="Write the report to this file (- for standard output).")
@click.option("--unsafe", is_flag=True, help="Run in a copy of the working folder, without a sandbox; writes elsewhere are real.")
def command(case: str, finding: str | None, budget: str, windows: int | None, json_file: str | None, unsafe: bool) -> None:
    """Run the experiments that settle a finding's causes.

    The program runs again in a sandbox: as it is, with one knob turned, and with a placebo. Nothing it writes reaches your files.
    """
    from trainsleuth.case.folder import open_case, write_json
    from trainsleuth.cli.choosing import bench_for, chosen
    from trainsleuth.cli.progress import follow
    from trainsleuth.report.proof import add_verdict, findings_of
    from trainsleuth.report.stored import load_report
    from trainsleuth.report.terminal import show_summary
    from trainsleuth.trials import settle
    from trainsleuth.trials.knobs import knob_for
    from trainsleuth.trials.sandbox import SandboxError

    opened = open_case(case)
    report: dict[str, Any] = load_report(opened)
    wanted = chosen(findings_of(report, opened.cwd), finding, lambda found: knob_for(found.rule) is not None)
    if not wanted:
        write_report_file(json_file, report)
        click.echo("Nothing to prove: the case has no finding that a trial can settle yet.", err=True)
        sys.exit(1 if report["verdict"] == "sick" else 0)
    console = console_on(sys.stderr)
    stopped = False
    try:
        for event in follow(console, settle.settle(bench_for(opened, budget, windows, unsafe), wanted)):
            if isinstance(event, settle.Settled):
                add_verdict(report, event.finding, event.verdict)
                write_json(opened.folder / "report.json", report)
    except SandboxError as problem:
        stop(str(problem))
    except KeyboardInterrupt:
        stopped = True
        click.echo("Stopped; the trials that were finished are kept.", err=True)
    write_report_file(json_file, report)
    if json_file != "-":
        ids = {found.id for found in wanted}
        shown = {**report, "findings": [row for row in report["findings"] if row["id"] in ids]}
        show_summary(console_on(sys.stdout), shown, opened.cwd)
    sys.exit(130 if stopped else 1)
