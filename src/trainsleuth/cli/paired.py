"""The experiments of `prove` that need no finding: one precision against the other, one variant against the other."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from trainsleuth.cli.output import console_on, stop, write_report_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainsleuth.case import Case
    from trainsleuth.trials.bench import Bench


def prove_precision(
    case: Case, report: dict[str, Any], bench: Bench, dtype: str, seeds: int, metric: str | None, json_file: str | None
) -> NoReturn:
    """16 bit against 32 bit; ends with 0 where nothing is lost."""
    from trainsleuth.report.precision import add_precision, lines, no_loss
    from trainsleuth.report.terminal import show_summary
    from trainsleuth.trials.precision import Asked, Precision, search

    known = _last(Precision, search(bench, Asked(dtype, seeds, metric)))
    if known is None:
        write_report_file(json_file, report)
        sys.exit(2)
    id = add_precision(report, known, case.cwd)
    _write(case, report, json_file)
    if json_file != "-":
        if id:
            shown = {**report, "findings": [row for row in report["findings"] if row["id"] == id]}
            show_summary(console_on(sys.stdout), shown, case.cwd)
        else:
            click.echo("\n".join(["", *lines(known), "", no_loss(known)]))
    sys.exit(1 if id else 0)


def prove_variant(
    case: Case, report: dict[str, Any], bench: Bench, variant: str, seeds: int, metric: str | None, json_file: str | None
) -> NoReturn:
    """The program as it is, and a variant of it; ends with 0 where no difference is shown."""
    from trainsleuth.report.against import add_against, table
    from trainsleuth.trials.against import Against, against
    from trainsleuth.trials.knobs import KnobError, own

    try:
        knob = own(variant)
    except KnobError as problem:
        stop(str(problem))
    known = _last(Against, against(bench, knob, seeds, metric))
    if known is None:
        write_report_file(json_file, report)
        sys.exit(2)
    add_against(report, known)
    _write(case, report, json_file)
    if json_file != "-":
        click.echo("\n".join(["", *table(known)]))
    sys.exit(1 if known.differs or known.claim == "lacks capacity" else 0)


def _last(kind: type[Any], events: Iterable[Any]) -> Any:
    """Show trials as they end; the result, or None where there is none."""
    from trainsleuth.cli.progress import follow
    from trainsleuth.trials.sandbox import SandboxError

    try:
        found = [event for event in follow(console_on(sys.stderr), events) if isinstance(event, kind)]
    except SandboxError as problem:
        stop(str(problem))
    except KeyboardInterrupt:
        click.echo("Stopped; the trials that were finished are kept.", err=True)
        sys.exit(130)
    return found[-1] if found else None


def _write(case: Case, report: dict[str, Any], json_file: str | None) -> None:
    from trainsleuth.case.folder import write_json

    write_json(case.folder / "report.json", report)
    write_report_file(json_file, report)
