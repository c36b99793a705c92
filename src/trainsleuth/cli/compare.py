"""trainsleuth compare: runs side by side, and which difference explains the outcome."""

from __future__ import annotations

import sys

import click

from trainsleuth.cli.output import console_on, stop, write_report_file


@click.command("compare")
@click.argument("cases", nargs=-1, required=True, metavar="CASE CASE…")
@click.option("--markdown", is_flag=True, help="As Markdown.")
@click.option("--json", "json_file", help="As JSON into this file (- for standard output).")
def command(cases: tuple[str, ...], markdown: bool, json_file: str | None) -> None:
    """Hold runs side by side: configuration, environment, code, speed, losses and metrics at equal steps.

    A CASE is a case's folder or name, or one of its trials, written CASE:T3. Runs that differ in the seed alone give the noise.
    """
    from trainsleuth.compare import compare, read_run
    from trainsleuth.report.comparison import as_json, as_markdown, show

    if len(cases) < 2:
        stop("compare needs two cases or more.")
    told = compare([read_run(case) for case in cases])
    write_report_file(json_file, as_json(told))
    if markdown:
        click.echo(as_markdown(told), nl=False)
    elif json_file is None:
        show(console_on(sys.stdout), told)
    sys.exit(0 if told.explanation.status == "no difference" else 1)
