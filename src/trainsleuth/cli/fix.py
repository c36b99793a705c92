"""trainsleuth fix: what cures a finding, as a diff, a variable, or advice."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from trainsleuth.cli.output import console_on, stop, write_report_file

if TYPE_CHECKING:
    from pathlib import Path

    from trainsleuth.remedies import Patch
    from trainsleuth.remedies.verify import Checked
    from trainsleuth.rules.kinds import Finding
    from trainsleuth.trials.settle import Bench


@click.command("fix")
@click.argument("case")
@click.argument("finding", required=False)
@click.option("--apply", "write", is_flag=True, help="Write the patch into your files. With --verify, only if it is verified.")
@click.option("--force", is_flag=True, help="Apply although a file has changes that are not committed.")
@click.option("--verify", "check", is_flag=True, help="Run the patched program in the sandbox, and compare.")
@click.option("--budget", default="5m", show_default=True, help="Time for --verify (90s, 5m, 1h).")
@click.option("--windows", type=click.IntRange(5, 100_000), help="Steps per trial; by default as the run had, at most 1000.")
@click.option("--json", "json_file", help="Write the report to this file (- for standard output).")
@click.option("--unsafe", is_flag=True, help="Run in a copy of the working folder, without a sandbox; writes elsewhere are real.")
def command(
    case: str, finding: str | None, write: bool, force: bool, check: bool, budget: str, windows: int | None, json_file: str | None,
    unsafe: bool,
) -> None:  # fmt: skip
    """Show what cures a finding: a unified diff on standard output; verify it, apply it. Where no patch is sound, it gives advice."""
    from trainsleuth import remedies
    from trainsleuth.case.folder import open_case, write_json
    from trainsleuth.cli.choosing import bench_for, chosen
    from trainsleuth.remedies.verify import environment_words
    from trainsleuth.report.proof import add_patch, findings_of
    from trainsleuth.report.stored import load_report
    from trainsleuth.trials.sandbox import SandboxError

    opened = open_case(case)
    report: dict[str, Any] = load_report(opened)
    wanted = chosen(findings_of(report, opened.cwd), finding, lambda found: remedies.propose(found) is not None)
    if not wanted:
        write_report_file(json_file, report)
        click.echo("Nothing to fix: the case has no finding that a patch can cure yet.", err=True)
        sys.exit(1 if report["verdict"] == "sick" else 0)
    console = console_on(sys.stderr)
    left = 0
    for found in wanted:
        candidates = remedies.candidates(found)
        if not candidates:
            click.echo(f"{found.id}  {found.rule}: no remedy is known for this rule yet.", err=True)
            left += 1
            continue
        patch, checked = candidates[0], None
        if check and patch.kind != "advice":
            try:
                checked = _first_verified(console, bench_for(opened, budget, windows, unsafe), found, candidates, windows)
            except SandboxError as problem:
                stop(str(problem))
            patch = checked.patch if checked is not None else patch
        ok = checked is not None and checked.ok
        add_patch(report, found.id, patch, opened.cwd, checked)
        write_json(opened.folder / "report.json", report)
        mark = "advice, not a patch: " if patch.kind == "advice" else "tried and not verified, only to be read: " if checked and not ok else ""
        click.echo(f"{found.id}  {found.rule}: {mark}{patch.summary}", err=True)
        if patch.kind == "advice":
            _show_lines(patch, opened.cwd)
        elif patch.kind == "env" and json_file != "-":
            click.echo(environment_words(patch, opened.command))
        elif json_file != "-":
            click.echo(patch.diff(opened.cwd), nl=False)
        if patch.kind == "patch" and write and (ok or not check):
            _apply(patch, opened.folder, force)
            continue
        left += 0 if ok and patch.kind == "env" else 1
        if write and patch.kind == "patch":
            click.echo("Not applied, because the trial did not verify it.", err=True)
    write_report_file(json_file, report)
    sys.exit(1 if left else 0)


def _show_lines(patch: Patch, cwd: Path) -> None:
    from trainsleuth.report.json_report import shown

    for line in patch.lines:
        file, _, number = line.rpartition(":")
        click.echo(f"    look at {shown(file, cwd)}:{number}", err=True)


def _apply(patch: Patch, case: Path, force: bool) -> None:
    from trainsleuth.remedies.patch import PatchError, apply, back_up, uncommitted

    loose = [] if force else uncommitted(patch)
    if loose:
        stop(f"{loose[0]} has changes that are not committed: commit them first, or say --force. Nothing was written.")
    try:
        kept = back_up(patch, case / "backups")
        apply(patch)
    except PatchError as problem:
        stop(str(problem))
    except OSError as problem:
        stop(f"the old files could not be kept in {case / 'backups'}: {problem.strerror}. Nothing was written.")
    click.echo(f"Applied to {', '.join(path.name for path in patch.files)}; the old content is in {kept}.", err=True)


def _first_verified(
    console: Any, bench: Bench, finding: Finding, candidates: Sequence[Patch], windows: int | None
) -> Checked | None:
    """Try the patches in turn; the first that a trial verifies, or else the first."""
    from trainsleuth.cli.progress import follow
    from trainsleuth.remedies.verify import Checked, check
    from trainsleuth.trials.settle import OutOfTime

    tried: list[Checked] = []
    for patch in candidates:
        try:
            for event in follow(console, check(bench, finding, patch, windows)):  # type: ignore[arg-type]
                if isinstance(event, Checked):
                    tried.append(event)
        except OutOfTime:
            click.echo("The budget is used up before the patch was verified.", err=True)
            break
        done = tried[-1]
        if len(candidates) > 1:
            click.echo(f"tried: {done.patch.summary}", err=True)
        for line in done.lines:
            click.echo(line, err=True)
        click.echo(f"{'verified' if done.ok else 'not verified'}: {done.why}", err=True)
        if done.ok:
            return done
    return tried[0] if tried else None
