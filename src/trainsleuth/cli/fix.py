"""trainsleuth fix: the diff that cures a finding."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from trainsleuth.cli.output import console_on, stop, write_report_file

if TYPE_CHECKING:
    from trainsleuth.remedies import Patch
    from trainsleuth.rules.kinds import Finding
    from trainsleuth.trials.settle import Bench
    from trainsleuth.trials.trial import Known


@click.command("fix")
@click.argument("case")
@click.argument("finding", required=False)
@click.option("--apply", "write", is_flag=True, help="Write the patch into your files. With --verify, only if it is verified.")
@click.option("--verify", "check", is_flag=True, help="Run the patched program in the sandbox, and compare.")
@click.option("--budget", default="5m", show_default=True, help="Time for --verify (90s, 5m, 1h).")
@click.option("--windows", type=click.IntRange(5, 100_000), help="Steps per trial; by default as the run had, at most 200.")
@click.option("--json", "json_file", help="Write the report to this file (- for standard output).")
@click.option("--unsafe", is_flag=True, help="Run in a copy of the working folder, without a sandbox; writes elsewhere are real.")
def command(
    case: str, finding: str | None, write: bool, check: bool, budget: str, windows: int | None, json_file: str | None,
    unsafe: bool,
) -> None:  # fmt: skip
    """Show the patch for a finding, as a unified diff on standard output; verify it, apply it."""
    from trainsleuth import remedies
    from trainsleuth.case.folder import open_case, write_json
    from trainsleuth.cli.choosing import bench_for, chosen
    from trainsleuth.remedies.patch import PatchError
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
        patch, ok = candidates[0], False
        pair: list[Known] = []
        if check and patch.kind == "patch":
            try:
                patch, ok, pair = _first_verified(console, bench_for(opened, budget, windows, unsafe), found, candidates)
            except SandboxError as problem:
                stop(str(problem))
        add_patch(report, found.id, patch, opened.cwd, ok, pair)
        write_json(opened.folder / "report.json", report)
        click.echo(f"{found.id}  {found.rule}: {patch.summary}", err=True)
        if patch.kind != "patch":
            left += 1
            continue
        if json_file != "-":
            click.echo(patch.diff(opened.cwd), nl=False)
        if write and (ok or not check):
            try:
                remedies.apply(patch)
            except PatchError as problem:
                stop(str(problem))
            click.echo(f"Applied to {', '.join(path.name for path in patch.files)}.", err=True)
        else:
            left += 1
            if write:
                click.echo("Not applied, because the trial did not verify it.", err=True)
    write_report_file(json_file, report)
    sys.exit(1 if left else 0)


def _first_verified(console: Any, bench: Bench, finding: Finding, candidates: list[Patch]) -> tuple[Patch, bool, list[Known]]:
    """Try the patches in turn; the first that a trial verifies, or else the first."""
    from trainsleuth.cli.progress import follow
    from trainsleuth.report.proof import trial_line
    from trainsleuth.trials.settle import Done, OutOfTime, verify
    from trainsleuth.trials.verdict import verified

    tried: list[tuple[Patch, bool, list[Known]]] = []
    for patch in candidates:
        if patch.kind != "patch":
            continue
        try:
            done = [event.known for event in follow(console, verify(bench, finding, patch.files)) if isinstance(event, Done)]
        except OutOfTime:
            click.echo("The budget is used up before the patch was verified.", err=True)
            break
        pair = sorted(done, key=lambda known: known.role != "control")
        ok, why = verified(finding.rule, pair[0].outcome, pair[1].outcome)
        for label, known in zip(("before", "after"), pair):
            click.echo(trial_line(label, known.outcome, finding.rule), err=True)
        click.echo(f"{'verified' if ok else 'not verified'}: {why}", err=True)
        tried.append((patch, ok, pair))
        if ok:
            return tried[-1]
    return tried[0] if tried else (candidates[0], False, [])
