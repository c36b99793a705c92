"""trainsleuth diagnose: post-mortem of a case, or of what a run left behind."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from trainsleuth.cli.output import console_on, must_be_writable, stop, write_report_file


@click.command("diagnose")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option("--json", "json_file", help="Write the report to this file (- for standard output).")
@click.option("--follow", is_flag=True, help="Read a log that is still being written, until Ctrl-C; findings come as they appear.")
def command(paths: tuple[str, ...], json_file: str | None, follow: bool) -> None:
    """Say what was wrong with a run, from what it left behind.

    PATH is a log, a table, an event file or a traceback, a folder or a pattern of such, or - for standard input; or a case, by its
    folder or name. Ends with 0 if nothing was found, 1 with findings, 2 if it could not work.
    """
    must_be_writable(json_file)
    if follow:
        _follow(paths, json_file)
    report, cwd = _judged_case(paths[0]) if len(paths) == 1 and _is_case(paths[0]) else _examined(paths)
    _end(report, cwd, json_file)


def _is_case(path: str) -> bool:
    folder = Path(path)
    if folder.is_dir():
        return (folder / "case.json").is_file()
    if path == "-" or folder.exists():
        return False
    from trainsleuth.case.folder import CaseError, open_case

    try:
        open_case(path)
    except CaseError as problem:
        return "could be any of" in str(problem)
    return True


def _judged_case(name: str) -> tuple[dict[str, Any], Path]:
    from trainsleuth.case.folder import open_case
    from trainsleuth.report.stored import judged_anew

    opened = open_case(name)
    return judged_anew(opened), opened.cwd


def _examined(paths: tuple[str, ...]) -> tuple[dict[str, Any], Path]:
    from trainsleuth.postmortem import examine
    from trainsleuth.readers.choose import NothingToRead

    try:
        return examine(paths).report(paths), Path.cwd()
    except NothingToRead as problem:
        stop(str(problem))


def _follow(paths: tuple[str, ...], json_file: str | None) -> None:
    import time

    from trainsleuth.postmortem import follow
    from trainsleuth.report.terminal import show_finding

    if len(paths) != 1 or not Path(paths[0]).is_file():
        stop("--follow needs one file.")
    console = console_on(sys.stderr)

    def wait() -> bool:
        try:
            time.sleep(1.0)
        except KeyboardInterrupt:
            return False
        return True

    seen = follow(Path(paths[0]), lambda finding: show_finding(console, finding, Path.cwd()), wait)
    _end(seen.report(paths), Path.cwd(), json_file)


def _end(report: dict[str, Any], cwd: Path, json_file: str | None) -> None:
    from trainsleuth.report.terminal import show_summary

    write_report_file(json_file, report)
    if json_file != "-":
        show_summary(console_on(sys.stdout), report, cwd)
    sys.exit(1 if report["verdict"] == "sick" else 0)
