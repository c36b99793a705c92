"""trainsleuth run: run a program under observation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

import click

from trainsleuth.case.folder import Case
from trainsleuth.case.run_chart import RunChart
from trainsleuth.cli.output import console_on, must_be_writable, stop, write_report_file
from trainsleuth.rules.kinds import Finding

OnHang = Literal["report", "kill", "wait"]


class SecondsOrAuto(click.ParamType[Any]):
    name = "seconds"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value in ("auto", "off"):
            return value
        try:
            seconds = float(value)
        except ValueError:
            self.fail(f"{value} is neither a number of seconds, nor auto, nor off.", param, ctx)
        if not 1 <= seconds <= 86_400:
            self.fail("give between 1 and 86400 seconds.", param, ctx)
        return seconds


@click.command("run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "--case", "folder", type=click.Path(path_type=Path), help="Keep the case in this folder instead of .trainsleuth/cases."
)
@click.option("--json", "json_file", help="Write the report to this file as well (- for standard output).")
@click.option("--quiet", is_flag=True, help="Print nothing; the report is in the case.")
@click.option(
    "--budget", type=click.FloatRange(0.05, 50), default=1.0, show_default=True, metavar="PERCENT", help="What watching may cost."
)
@click.option("--no-live", is_flag=True, help="No findings before the end.")
@click.option(
    "--hang-after",
    type=SecondsOrAuto(),
    default="auto",
    show_default=True,
    metavar="SECONDS|auto|off",
    help="A run that shows no progress for so long is looked at from outside.",
)
@click.option(
    "--on-hang",
    type=click.Choice(["report", "kill", "wait"]),
    default="report",
    show_default=True,
    help="Say so and go on watching; end the program; or say it only at the end.",
)
@click.option(
    "--examine",
    type=click.FloatRange(0, 86_400),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="After NaN or an autograd error, run the program again in a sandbox for at most so long, to find the operation; 0: never.",
)
@click.option("--prove", is_flag=True, help="Afterwards, settle what was found by trials.")
@click.option("--fix", is_flag=True, help="And then show the patch, tried in a trial; implies --prove.")
@click.option("--prove-budget", default="5m", show_default=True, help="Time for the trials (90s, 5m, 1h).")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[--] COMMAND…")
def command(
    folder: Path | None,
    json_file: str | None,
    quiet: bool,
    budget: float,
    no_live: bool,
    hang_after: float | str,
    on_hang: OnHang,
    examine: float,
    prove: bool,
    fix: bool,
    prove_budget: str,
    words: tuple[str, ...],
) -> None:
    """Run a program under observation, and say at the end what is wrong with it.

    The program, its output, its exit code and its numbers are as without us. A .py file is run by the active Python.
    """
    from trainsleuth.report.terminal import show_finding, show_summary
    from trainsleuth.supervise.command import CommandError
    from trainsleuth.supervise.session import HangPolicy, ReportError, leave_like, watch_run
    from trainsleuth.trials.examine import examine_if_wanted

    console = console_on(sys.stderr)

    def show(finding: Finding, case: Case) -> None:
        sys.stderr.write("\r\x1b[2K")
        show_finding(console, finding, case.cwd, case.name)

    def show_hang(finding: Finding, case: Case) -> None:
        show_finding(console, finding, case.cwd, case.name)

    live = show if sys.stderr.isatty() and not (no_live or quiet) else None
    live_hang = None if no_live or quiet or on_hang == "wait" else show_hang
    hangs = HangPolicy(hang_after != "off", hang_after if isinstance(hang_after, float) else None, on_hang)
    must_be_writable(json_file)

    def look_closer(case: Case, chart: RunChart) -> None:
        say = (lambda text: None) if quiet else (lambda text: click.echo(f"trainsleuth: {text}", err=True))
        examine_if_wanted(case, chart, say, examine)

    try:
        case, report, code = watch_run(words, folder, budget / 100, live, live_hang, hangs, look_closer if examine else None)
    except CommandError as problem:
        stop(str(problem))
    except ReportError as problem:
        click.echo(f"trainsleuth: {problem}", err=True)
        leave_like(problem.code)
    follows = (prove or fix) and (report["verdict"] == "sick" or _notes_to_try(report, case))
    if not quiet:
        show_summary(console, report, case.cwd, brief=follows)
    if follows:
        report = prove_and_fix(case, fix, prove_budget)
    write_report_file(json_file, report)
    leave_like(code)


def _notes_to_try(report: dict[str, Any], case: Case) -> bool:
    from trainsleuth.cli.choosing import chosen
    from trainsleuth.cli.prove import can_be_tried
    from trainsleuth.report.proof import findings_of

    return bool(chosen(findings_of(report, case.cwd), None, can_be_tried))


def prove_and_fix(case: Case, fix: bool, budget: str) -> dict[str, Any]:
    """What `prove` and `fix --verify` would do next; the report as they leave it."""
    from trainsleuth.cli.fix import command as fixing
    from trainsleuth.cli.prove import command as proving
    from trainsleuth.report.stored import load_report

    calls = [(proving, ["--budget", budget])] + ([(fixing, ["--verify", "--budget", budget])] if fix else [])
    for following, options in calls:
        if following is fixing and load_report(case)["verdict"] != "sick":
            break  # notes that trials have not confirmed need no cure
        try:
            following.main([str(case.folder), *options], standalone_mode=False)
        except SystemExit as ended:  # their exit codes are about findings; ours is the program's
            if ended.code == 130:
                break
    return load_report(case)
