"""Decides what the user reads: which cause explains which symptom, which explains another away, and what comes first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Place
from trainsleuth.case.record_chart import RecordChart
from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules.catalogue import all_rules, record_rules
from trainsleuth.rules.kinds import ORDER, Abstention, Cause, Finding, Missing, Remedy, Rule, Seen, Spot, Verdict, Where
from trainsleuth.rules.locate import below_decorators, closer, code_at, computes, neighbours

DecidedVerdict = Literal["healthy", "sick", "unsure"]

MOST_JUDGED = 32
WITH_NEIGHBOURS = ("nan/", "autograd/", "checkpoint/")  # where one operation among others is to blame
ENOUGH_OF_A_LOSS = 10


@dataclass
class Diagnosis:
    verdict: DecidedVerdict
    findings: list[Finding] = field(default_factory=list)
    abstained: list[Abstention] = field(default_factory=list)
    why_unsure: str = ""


def diagnose(run: RunChart) -> Diagnosis:
    """All findings of a run, best first, over all its processes; the same finding on several ranks is told once."""
    findings, missing = judge_run(run)
    abstained = {abstention.rule: abstention for abstention in missing}
    known: set[tuple[str, tuple[tuple[str, int], ...]]] = set()
    charts = _a_few(run.training() or run.with_torch() or run.crashes())
    of_all = [_rule_of(finding) for finding in findings if finding.severity != "note"]
    explained = {name for rule in of_all for name in (*rule.explains, *rule.masks)}
    for chart in charts:
        found, missing = judge_process(chart)
        found = [finding for finding in found if finding.rule not in explained]
        for abstention in missing:
            abstained.setdefault(abstention.rule, abstention)
        for finding in found:
            key = (finding.rule, tuple((where.file, where.line) for where in finding.where[:1]))
            if key not in known:
                known.add(key)
                findings.append(finding)
    for chart in run.crashes():
        if chart not in charts:
            findings.extend(finding for finding in judge_process(chart)[0] if finding.rule not in explained)
    findings.sort(key=_reading_order)
    for index, finding in enumerate(findings, 1):
        finding.id = f"F{index}"
    named = {finding.rule for finding in findings}
    return Diagnosis(_verdict(run, findings), findings, [a for a in abstained.values() if a.rule not in named], _why_unsure(run))


def _a_few(charts: list[ProcessChart]) -> list[ProcessChart]:
    """Of a thousand ranks that do the same a few tell what all have to tell, and those that broke tell what they alone know."""
    if len(charts) <= MOST_JUDGED:
        return charts
    spread = charts[:: -(-len(charts) // MOST_JUDGED)]
    broken = [chart for chart in charts if chart.crash is not None or any(curve.not_finite for curve in chart.losses.values())]
    return spread + [chart for chart in broken[:MOST_JUDGED] if chart not in spread]


def _rule_of(finding: Finding) -> Rule:
    return next(rule for rule in all_rules() if rule.name == finding.rule)


def _reading_order(finding: Finding) -> tuple[int, int, int, int, int]:
    """The worst first; of these what was seen in the program's own steps before what is only concluded from its numbers, and logs last."""
    names = [rule.name for rule in all_rules()]
    is_symptom = any(rule.name == finding.rule and rule.kind == "symptom" for rule in all_rules())
    of_logs = finding.rule.startswith("logging/")
    return ORDER[finding.severity], int(is_symptom), int(of_logs), int(not finding.structural), names.index(finding.rule)


def _verdict(run: RunChart, findings: list[Finding]) -> DecidedVerdict:
    if any(finding.severity != "note" for finding in findings):
        return "sick"
    return "unsure" if _why_unsure(run) else "healthy"


def _why_unsure(run: RunChart) -> str:
    if not run.processes:
        return "no probe reached the program (python -I or -E, env -i, or no Python at all): nothing is known about the training"
    if not run.with_torch():
        return "the program did not import torch, so there was nothing to watch"
    if run.killed == "SIGKILL":
        return (
            "the program was killed from outside (SIGKILL): because memory ran out (dmesg says so), by a limit of the cluster, or by hand; "
            "until then no fault was seen"
        )
    if not run.training():
        return (
            "no backward() and no optimizer step was seen: it did not train while it was watched, or in a way that is not watched "
            "(gradients by torch.func or torch.autograd.grad, weights changed by hand)"
        )
    return ""


def judge_run(run: RunChart) -> tuple[list[Finding], list[Abstention]]:
    """What is to be said of all processes together."""
    return _judge([rule for rule in all_rules() if rule.of_run], run, None)


def judge_process(chart: ProcessChart) -> tuple[list[Finding], list[Abstention]]:
    return _judge([rule for rule in all_rules() if not rule.of_run and not rule.of_record], chart, chart.process.get("rank"))


def diagnose_records(chart: RecordChart) -> Diagnosis:
    """All findings of what runs left behind, best first."""
    findings, missing = _judge([rule for rule in record_rules() if rule.of_all], chart, None)
    abstained = {abstention.rule: abstention for abstention in missing}
    for source in chart.sources.values():
        found, missing = _judge([rule for rule in record_rules() if not rule.of_all], source, None)
        findings += found
        for abstention in missing:
            abstained.setdefault(abstention.rule, abstention)
    findings.sort(key=_reading_order)
    for index, finding in enumerate(findings, 1):
        finding.id = f"F{index}"
    named = {finding.rule for finding in findings}
    why = _too_thin(chart)
    verdict: DecidedVerdict = "sick" if any(f.severity != "note" for f in findings) else "unsure" if why else "healthy"
    return Diagnosis(verdict, findings, [a for a in abstained.values() if a.rule not in named], why)


def _too_thin(chart: RecordChart) -> str:
    """Why silence means little here, or nothing."""
    ranks = {fact["rank"] for source in chart.sources.values() for fact in source.flights}
    if not chart.points and ranks:
        alone = "these are the collectives of one rank: give the dumps of all ranks, to hold them beside each other"
        return alone if len(ranks) == 1 else "the ranks were held beside each other by their collectives; of the training these say nothing"
    if not chart.points:
        return "no number with a name was found, so there was nothing to judge"
    if not any((loss := run.main_loss() or run.held_out_loss()) and loss.values >= ENOUGH_OF_A_LOSS for run in chart.runs()):
        return f"there is no loss with {ENOUGH_OF_A_LOSS} values, so little could be judged"
    return ""


def _judge(rules: list[Rule], chart: Any, rank: int | None) -> tuple[list[Finding], list[Abstention]]:
    symptoms: dict[str, tuple[Rule, Seen]] = {}
    causes: list[tuple[Rule, Seen]] = []
    abstained: list[Abstention] = []
    for rule in rules:
        verdict = judged(rule, chart)
        if isinstance(verdict, Missing):
            abstained.append(Abstention(rule.name, verdict.what))
        elif isinstance(verdict, Seen) and rule.kind == "symptom":
            symptoms[rule.name] = (rule, verdict)
        elif isinstance(verdict, Seen):
            causes.append((rule, verdict))
    causes = _heard(causes)
    findings = [_finding(rank, rule, seen, symptoms) for rule, seen in causes]
    explained = {name for rule, seen in causes for name in rule.explains if seen.severity != "note"}
    if "stall/flat-loss" in explained:
        explained.add("stall/uniform-predictions")
    left = [name for name in symptoms if name not in explained]
    if "stall/uniform-predictions" in left and "stall/flat-loss" in left:
        left.remove("stall/flat-loss")
    findings += [_finding(rank, *symptoms[name], {}) for name in left]
    return findings, abstained


def judged(rule: Rule, chart: Any) -> Verdict:
    """A rule that trips over facts it did not expect abstains; the others are heard all the same."""
    try:
        return rule.judge(chart)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError) as problem:
        return Missing(f"facts that it understands ({type(problem).__name__}: {problem})")


def _heard(causes: list[tuple[Rule, Seen]]) -> list[tuple[Rule, Seen]]:
    """Without the causes that another one explains away, and without last resorts while there is anything better."""
    strong = [(rule, seen) for rule, seen in causes if seen.severity != "note" and not rule.last_resort]
    masked = {name for rule, _ in strong for name in rule.masks}
    heard = [(rule, seen) for rule, seen in causes if rule.name not in masked]
    if any(rule.explains for rule, _ in strong):
        heard = [(rule, seen) for rule, seen in heard if not rule.last_resort]
    return heard


def _finding(rank: int | None, rule: Rule, seen: Seen, symptoms: dict[str, tuple[Rule, Seen]]) -> Finding:
    explained = [name for name in rule.explains if name in symptoms]
    statement = seen.statement or seen.title
    finding = Finding(
        id="", rule=rule.name, severity=seen.severity, title=seen.title, step=seen.step,
        rank=seen.rank if seen.rank is not None else rank, about_standstill=rule.of_run,
        symptoms=explained, symptom_texts=[symptoms[name][1].title for name in explained],
        where=_places(seen, rule), evidence=list(seen.evidence), certain=seen.certain, structural=rule.structural,
        remedies=[Remedy("advice", text) for text in seen.advice], settle=seen.settle,
    )  # fmt: skip
    if rule.kind == "cause" or seen.statement:
        finding.causes = [Cause(rule.name, statement, "suspected", settled_by=list(rule.settled_by))]
    return finding


def _places(seen: Seen, rule: Rule) -> list[Where]:
    spots = [spot if isinstance(spot, Spot) else Spot(spot) for spot in seen.where if spot is not None]
    if seen.look_for:
        found = closer(seen.look_for, [spot.at for spot in spots])
        if found is not None:
            spots.insert(0, Spot(*found))
    lines: dict[tuple[str, int], Where] = {}
    for spot in spots:
        at: Place = below_decorators(spot.at) if spot.function else spot.at
        if spot.returned is not None:
            at = computes(spot.at, spot.returned) or at
        lines.setdefault((at.file, at.line), Where(at.file, at.line, code_at(at) if spot.code is None else spot.code, spot.note))
    places = list(lines.values())
    if places and rule.name.startswith(WITH_NEIGHBOURS) and not rule.of_record:
        places[0].around = neighbours(places[0].file, places[0].line)
    return places
