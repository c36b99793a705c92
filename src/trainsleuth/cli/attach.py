"""trainsleuth attach: what is this process doing, and why does it not go on?"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from trainsleuth.cli.output import console_on, must_be_writable, stop, write_report_file


@click.command("attach")
@click.argument("pid", type=int)
@click.option(
    "--case", "folder", type=click.Path(path_type=Path), help="Keep the case in this folder instead of .trainsleuth/cases."
)
@click.option("--json", "json_file", help="Write the report to this file as well (- for standard output).")
def command(pid: int, folder: Path | None, json_file: str | None) -> None:
    """Look at a running process from outside, twice, and say whether it is stuck or slow, and where.

    The process goes on as before; it need not have been started by us. Ends with 1 if it stands still.
    """
    from trainsleuth.case.folder import CaseError
    from trainsleuth.report.terminal import show_summary
    from trainsleuth.supervise.attaching import AttachError, attach

    must_be_writable(json_file)
    try:
        case, report, words = attach(pid, folder)
    except (AttachError, CaseError) as problem:
        stop(str(problem))
    console = console_on(sys.stderr)
    write_report_file(json_file, report)
    if report["findings"]:
        show_summary(console, report, case.cwd)
    for line in words:
        click.echo(line)
    raise SystemExit(1 if report["findings"] else 0)
