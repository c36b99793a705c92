"""trainsleuth report: print a case."""

from __future__ import annotations

import sys

import click

from trainsleuth.cli.output import console_on, stop, write_report_file


@click.command("report")
@click.argument("case")
@click.option("--markdown", is_flag=True, help="As Markdown, ready to be filed as an issue.")
@click.option("--redact", is_flag=True, help="With --markdown: without paths, user and host names, addresses and secrets.")
@click.option("--json", "json_file", help="As JSON into this file (- for standard output).")
def command(case: str, markdown: bool, redact: bool, json_file: str | None) -> None:
    """Print what is known about a case, with its trials."""
    from trainsleuth.case.folder import open_case
    from trainsleuth.report.markdown import as_markdown
    from trainsleuth.report.stored import load_report
    from trainsleuth.report.terminal import show_summary

    if redact and not markdown:
        stop("--redact goes with --markdown.")
    opened = open_case(case)
    report = load_report(opened)
    write_report_file(json_file, report)
    if markdown:
        click.echo(as_markdown(opened, report, redact), nl=False)
    elif json_file is None:
        show_summary(console_on(sys.stdout), report, opened.cwd)
    sys.exit(1 if report["verdict"] == "sick" else 0)
