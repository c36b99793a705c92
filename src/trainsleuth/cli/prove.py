"""trainsleuth prove: confirm or refute the suspected causes of a case."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainsleuth.cli.output import console_on, stop, write_report_file

if TYPE_CHECKING:
    from trainsleuth.case import Case
    from trainsleuth.remedies.desk import Diagnosed
    from trainsleuth.rules.kinds import Finding
    from trainsleuth.trials.bench import Bench
    from trainsleuth.trials.knobs import Knob


@click.command("prove")
@click.argument("case")
@click.argument("finding", required=False)
@click.option("--budget", default="5m", show_default=True, help="Stop after this time (90s, 5m, 1h); what is known is kept.")
@click.option("--windows", type=click.IntRange(5, 100_000), help="Steps per trial; by default as the run had, at most 200.")
@click.option("--suspect", "suspects", multiple=True, metavar="KNOB", help="Test this knob against the symptom; see `trainsleuth knobs`.")
@click.option("--knob", "own_knobs", multiple=True, metavar="NAME=CHANGE",
              help="Test a knob of your own: NAME=--lr=0.1, NAME=optim.lr=0.1, NAME=ENV:VARIABLE=value.")  # fmt: skip
@click.option("--isolate", is_flag=True, help="For a hang or a crash: which part of the model, alone, already fails.")
@click.option("--precision", is_flag=False, flag_value="own", type=click.Choice(["own", "bf16", "fp16"]),
              help="16 bit against 32 bit: what is lost, and which modules to keep in 32 bit. bf16, fp16: for a program in 32 bit.")  # fmt: skip
@click.option("--against", "variant", metavar="NAME=CHANGE", help="Another variant of the program, named like a --knob, against it as it is.")
@click.option("--seeds", default=4, show_default=True, type=click.IntRange(2, 5), help="Seeds for --precision and --against.")
@click.option("--metric", metavar="NAME", help="What --precision and --against compare; by default a score that is logged or printed.")
@click.option("--json", "json_file", help="Write the report to this file (- for standard output).")
@click.option("--unsafe", is_flag=True, help="Run in a copy of the working folder, without a sandbox; writes elsewhere are real.")
def command(
    case: str, finding: str | None, budget: str, windows: int | None, suspects: tuple[str, ...], own_knobs: tuple[str, ...],
    isolate: bool, precision: str | None, variant: str | None, seeds: int, metric: str | None, json_file: str | None, unsafe: bool,
) -> None:  # fmt: skip
    """Run the experiments that settle a finding's causes.

    The program runs again in a sandbox: as it is, with one knob turned, and with a placebo. Nothing it writes reaches your files.
    """
    from trainsleuth.case.folder import open_case
    from trainsleuth.cli.choosing import bench_for, chosen
    from trainsleuth.cli.paired import prove_precision, prove_variant
    from trainsleuth.report.proof import asked_about, findings_of
    from trainsleuth.report.stored import load_report
    from trainsleuth.report.terminal import show_summary
    from trainsleuth.trials import settle
    from trainsleuth.trials.sandbox import SandboxError

    opened = open_case(case)
    if precision is not None:
        prove_precision(opened, load_report(opened), bench_for(opened, budget, windows, unsafe), precision, seeds, metric, json_file)
    if variant is not None:
        prove_variant(opened, load_report(opened), bench_for(opened, budget, windows, unsafe), variant, seeds, metric, json_file)
    report: dict[str, Any] = examined(opened, load_report(opened), budget, unsafe)
    knobs = _knobs(suspects, own_knobs)
    if knobs or isolate:
        wanted = chosen(findings_of(report, opened.cwd), finding, lambda found: True)[:1]
        if knobs and not wanted:
            wanted = [asked_about(report)]
    else:
        wanted = chosen(findings_of(report, opened.cwd), finding, can_be_tried)
    if not wanted:
        write_report_file(json_file, report)
        click.echo("Nothing to prove: the case has no finding that a trial can settle.", err=True)
        sys.exit(1 if report["verdict"] == "sick" else 0)

    def events(bench: Bench) -> Iterable[Any]:
        if isolate:
            from trainsleuth.trials.isolate import isolate as part_by_part

            return part_by_part(bench, wanted[0])
        return settle.suspect(bench, wanted[0], knobs) if knobs else settle.settle(bench, wanted, rewritten)

    try:
        stopped = follow_to_the_end(opened, report, events(bench_for(opened, budget, windows, unsafe)))
    except SandboxError as problem:
        stop(str(problem))
    write_report_file(json_file, report)
    if json_file != "-":
        ids = {found.id for found in wanted}
        rows = [*report["findings"], *report.get("asked", [])]
        shown = {**report, "findings": [row for row in rows if row["id"] in ids]}
        show_summary(console_on(sys.stdout), shown, opened.cwd)
    sys.exit(130 if stopped else 1)


def examined(case: Case, report: dict[str, Any], budget: str, unsafe: bool) -> dict[str, Any]:
    """The report after an examination of the broken step, if the run called for one that was not made; else as it is."""
    from trainsleuth.case.run_chart import RunChart
    from trainsleuth.cli.choosing import seconds
    from trainsleuth.report.stored import judged_anew
    from trainsleuth.trials.examine import examine_if_wanted

    chart = RunChart(case.facts)
    chart.refresh()
    if not examine_if_wanted(case, chart, lambda text: click.echo(f"trainsleuth: {text}", err=True), seconds(budget), unsafe=unsafe):
        return report
    return {**judged_anew(case), "trials": report["trials"]}


def _knobs(suspects: tuple[str, ...], own_knobs: tuple[str, ...]) -> list[Knob]:
    from trainsleuth.trials.knobs import KnobError, named, own

    try:
        return [named(text) for text in suspects] + [own(text) for text in own_knobs]
    except KnobError as problem:
        stop(str(problem))


def can_be_tried(finding: Finding) -> bool:
    """Whether there is a knob for it, one that removes its mechanism or for a symptom one that may ease it; or lines to rewrite."""
    from trainsleuth.rules.catalogue import rule_named
    from trainsleuth.trials.knobs import easing, knobs_for

    rule = rule_named(finding.rule)
    eased = rule is not None and rule.kind == "symptom" and bool(easing([finding.rule]))
    return bool(knobs_for(finding.rule)) or eased or bool(rewritten(finding))


def rewritten(finding: Diagnosed) -> Mapping[Path, bytes]:
    """The files of the best patch for a finding, if it is a matter of its lines alone."""
    from trainsleuth.remedies.propose import candidates

    return next((patch.files for patch in candidates(finding) if patch.files and not patch.environment), {})


def follow_to_the_end(case: Case, report: dict[str, Any], events: Iterable[Any]) -> bool:
    """Show trials as they end, and write each verdict into the report at once; whether Ctrl-C came."""
    from trainsleuth.case.folder import write_json
    from trainsleuth.cli.progress import follow
    from trainsleuth.report.proof import add_isolated, add_verdict
    from trainsleuth.trials import settle
    from trainsleuth.trials.isolate import Isolated

    try:
        for event in follow(console_on(sys.stderr), events):
            if isinstance(event, settle.Settled):
                add_verdict(report, event.finding, event.verdict, event.statement)
            elif isinstance(event, Isolated):
                add_isolated(report, event)
            else:
                continue
            write_json(case.folder / "report.json", report)
    except KeyboardInterrupt:
        click.echo("Stopped; the trials that were finished are kept.", err=True)
        return True
    return False
