"""What the commands share: the console on standard error, JSON files, the end of a bad call."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

import click


def console_on(stream: Any) -> Any:
    from rich.console import Console

    return Console(file=stream, highlight=False, width=None if stream.isatty() else 100)


def write_report_file(path: str | None, report: dict[str, Any]) -> None:
    """Write JSON to a file, or to standard output for `-`."""
    if path is None:
        return
    text = json.dumps(report, indent=1)
    if path == "-":
        click.echo(text)
        return
    try:
        Path(path).write_text(text + "\n", encoding="utf-8")
    except OSError as problem:
        stop(f"cannot write {path}: {problem.strerror}.")


def must_be_writable(path: str | None) -> None:
    """Say before a long run, not after it, that its report cannot be written."""
    if path is not None and path != "-":
        try:
            Path(path).open("a", encoding="utf-8").close()
        except OSError as problem:
            stop(f"cannot write {path}: {problem.strerror}.")


def stop(sentence: str) -> NoReturn:
    click.echo(f"trainsleuth: {sentence}", err=True)
    sys.exit(2)
