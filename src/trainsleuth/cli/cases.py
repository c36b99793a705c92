"""trainsleuth cases: list the cases of this folder."""

from __future__ import annotations

import time
from pathlib import Path

import click


@click.command("cases")
def command() -> None:
    """The cases of this folder, oldest first."""
    from trainsleuth.case.folder import CaseError, list_cases, open_case
    from trainsleuth.report.stored import load_report

    folders = list_cases(Path.cwd())
    if not folders:
        click.echo("no cases here yet: `trainsleuth run -- python train.py` makes one")
        return
    for folder in folders:
        try:
            case = open_case(folder)
        except CaseError as problem:
            click.echo(f"{folder.name}  {problem}")
            continue
        report = load_report(case)
        first = report["findings"][0]["rule"] if report["findings"] else ""
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(case.about.get("started", 0)))
        click.echo(f"{folder.name:<44} {when}  {report['verdict']:<8} {first}")
