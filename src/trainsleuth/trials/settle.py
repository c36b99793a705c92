"""Settles the suspected causes of a case: runs control, knob and placebo, and yields what happens as it happens.

Trials that the case already has are not run again. Whoever stops listening (Ctrl-C, a budget) keeps what is known: each trial is
stored when it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules.catalogue import rule_named
from trainsleuth.rules.kinds import STANDSTILLS
from trainsleuth.rules.origins import stopped_by_itself
from trainsleuth.trials.bench import MOST_WINDOWS, Begun, Bench, Done, OutOfTime, require_sandbox
from trainsleuth.trials.knobs import Knob, Pointed, easing, knobs_for
from trainsleuth.trials.runs import More, Symptom
from trainsleuth.trials.smallest import leave_out
from trainsleuth.trials.trial import Known, Role, Setting, Trial
from trainsleuth.trials.verdict import (
    BESIDE_A_REPEAT,
    PROVED_BY_SCORES,
    SEEN_IN_SCORES,
    Verdict,
    judge,
    judge_suspicion,
    nothing_to_remove,
)

SEEDS = (1000, 2000, 3000, 4000)
HANGS = ("hang/", "ranks/")
OF_THE_SOURCE = frozenset({"ModuleNotFoundError", "ImportError", "SyntaxError", "IndentationError", "NameError", "UnboundLocalError",
                           "FileNotFoundError", "NotADirectoryError", "IsADirectoryError", "PermissionError", "FileExistsError"})  # fmt: skip
SHOWS_THE_REST = "overfit-one-batch"  # model, loss and optimizer can learn; what cannot be learnt is the data
__all__ = ["Begun", "Bench", "Done", "Event", "Note", "OutOfTime", "Settled", "Suspected", "Unsettled", "settle", "suspect"]


class Suspected(Protocol):
    """A finding, as far as a trial must know it."""

    @property
    def id(self) -> str: ...
    @property
    def rule(self) -> str: ...
    @property
    def where(self) -> Sequence[Pointed]: ...
    @property
    def evidence(self) -> Sequence[str]: ...
    @property
    def symptoms(self) -> Sequence[str]: ...
    @property
    def step(self) -> int | None: ...
    @property
    def severity(self) -> str: ...


@dataclass(frozen=True)
class Settled:
    """A cause is settled, as far as it can be."""

    finding: str
    verdict: Verdict
    statement: str = ""  # of a cause that the finding did not have before


@dataclass(frozen=True)
class Unsettled:
    """A finding for which nothing could be tried, and why."""

    finding: str
    rule: str
    why: str


@dataclass(frozen=True)
class Note:
    """Something that the user should know before or between the trials."""

    text: str


Event = Begun | Done | Settled | Unsettled | Note
Rewrites = Callable[[Suspected], Mapping[Path, bytes]]  # the user's files without the cause, where that can be written; else none


def settle(bench: Bench, findings: Sequence[Suspected], rewrites: Rewrites) -> Iterator[Event]:
    """Try the causes of these findings, one after the other, until all are settled or the time is over.

    Where no knob removes a cause from inside, the program is run with the guilty lines rewritten.
    """
    require_sandbox(bench.unsafe)
    verdicts: dict[str, Verdict] = {}
    for index, finding in enumerate(findings):
        try:
            for event in _settle_one(bench, finding, rewrites, share=len(findings) - index):
                if isinstance(event, Settled) and event.verdict.rule == finding.rule:
                    verdicts[finding.id] = event.verdict
                yield event
        except OutOfTime:
            yield Unsettled(finding.id, finding.rule, "the budget is used up; the trials that were run are kept")
    try:
        yield from _together(bench, findings, verdicts)
    except OutOfTime:
        return


def symptom_of(finding: Suspected, run: RunChart) -> Symptom:
    """What tells a sick run from a sound one, for this finding."""
    names = (finding.rule, *finding.symptoms)
    if finding.rule.startswith("logging/"):
        return "loss"
    if finding.rule.startswith("nan/") and ("crash/exception" in names or any(map(stopped_by_itself, run.processes.values()))):
        return "nan"  # what raises, or gives up, does so because of the numbers
    of_ranks = finding.rule.startswith("ranks/") and run.standstill() is None and bool(run.crashes())  # they may raise instead of waiting
    if of_ranks or ("crash/exception" in names and not set(STANDSTILLS) & set(names)):
        return "crash"
    if any(name.startswith(HANGS) and name not in ("ranks/diverged-weights", "ranks/same-data-on-every-rank") for name in names):
        return "hang"
    return "nan" if "nan/loss-not-finite" in names else "loss"


def _has_learnt(run: RunChart) -> bool:
    """Whether a loss of the run fell by half or more, seen as a whole: a trial may be too short to show it."""
    curves = [main[1] for process in run.processes.values() if (main := process.main_loss()) is not None and main[1].points]
    ends = [(curve.between(0.0, 0.05)[0], curve.between(0.75, 1.0)[0]) for curve in curves]
    return any(first - last > abs(first) / 2 for first, last in ends)


def _of_the_source(run: RunChart) -> str:
    """The kind of exception with which the program ended, if it is one that has nothing to do with how torch computes."""
    kinds = [str(process.crash["kind"]) for process in run.crashes() if process.crash is not None]
    return kinds[0] if kinds and set(kinds) <= OF_THE_SOURCE else ""


def _known_at(bench: Bench, finding: Suspected) -> int | None:
    """The step by which the symptom had shown; a trial must get there."""
    symptom = symptom_of(finding, bench.chart)
    if symptom == "hang":
        return None
    steps = [finding.step] if finding.step is not None else []
    if symptom == "loss" and bench.loss_began:  # an earlier phase trains with another loss
        steps.append(bench.loss_began + min(bench.seen - bench.loss_began, MOST_WINDOWS))
    if symptom == "nan":
        steps += [process.bad_between[1] for process in bench.chart.training() if process.bad_between]
    if symptom == "crash":
        steps += [process.windows + 1 for process in bench.chart.crashes()]
    return max(steps, default=None)


@dataclass
class Experiment:
    """One knob, or several, or rewritten lines, against one finding: control, knob, placebo, and the repeats that chance makes necessary."""

    bench: Bench
    finding: Suspected
    settings: tuple[Setting, ...]
    label: str
    share: int = 1
    files: Mapping[Path, bytes] = field(default_factory=dict)  # rewritten where the knob is turned
    removes: tuple[str, ...] = ()  # the mechanisms that the knob is made for
    got: dict[str, Known] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.symptom = symptom_of(self.finding, self.bench.chart)
        self._files = [Path(place.file) for place in self.finding.where]
        self._loss_at = self.bench.loss_named_by(self.finding.where)

    @property
    def shows_the_rest(self) -> bool:
        return any(setting.knob == SHOWS_THE_REST for setting in self.settings)

    def _trial(self, turned: bool, seed: int | None) -> Trial:
        role: Role = "knob" if turned else "control" if seed is None else "placebo"
        label, settings, files = (self.label, self.settings, self.files) if turned else (role, (), {})
        if seed is not None:
            repeats = self.finding.rule in BESIDE_A_REPEAT and self.symptom == "loss"
            settings = (*settings, Setting("nothing") if repeats else Setting("seed", {"offset": seed}))
            label = f"{label} {SEEDS.index(seed) + 2}" if turned else "repeated" if repeats else "other seed"
        return self.bench.trial(role, label, settings, files=files, watched=self._files, standing=self.symptom == "hang", loss_at=self._loss_at)

    def control(self, seed: int | None = None) -> Trial:
        return self._trial(False, seed)

    def same_again(self) -> Trial:
        settings = (Setting("nothing"),)
        return self.bench.trial("placebo", "repeated", settings, watched=self._files, standing=self.symptom == "hang", loss_at=self._loss_at)

    def exchanged(self) -> Trial:
        settings = (Setting("inputs-turned-round"),)
        return self.bench.trial("placebo", "inputs exchanged", settings, watched=self._files, loss_at=self._loss_at)

    def turned(self, seed: int | None = None) -> Trial:
        return self._trial(True, seed)

    def run(self, wanted: Sequence[Trial]) -> Iterator[Event]:
        for event in self.bench.run(wanted, self.share):
            if isinstance(event, Done):
                self.got[event.known.key] = event.known
            yield event

    def known(self, one: Trial) -> Known:
        return self.got[one.key]

    def first(self) -> Iterator[Event]:
        yield from self.run([self.control(), self.turned(), self.control(SEEDS[0])])

    def more(self, what: More) -> Iterator[Event]:
        """The same once more; or another placebo and the knob with the seeds of the placebos: three against three where runs break, else
        pair by pair."""
        pairs = self.pairs()
        control = self.known(self.control()).outcome
        if what in ("repeat", "exchange"):
            yield from self.run([self.same_again() if what == "repeat" else self.exchanged()])
        elif self.symptom != "loss" or control.kind == "nan":
            yield from self.run([self.control(SEEDS[1]), self.turned(SEEDS[0]), self.turned(SEEDS[1])])
        elif pairs < len(SEEDS):
            yield from self.run([self.control(SEEDS[pairs]), self.turned(SEEDS[pairs - 1])])

    def pairs(self) -> int:
        return sum(1 for seed in SEEDS if self.control(seed).key in self.got)

    def _of_other_seeds(self, trial: Callable[[int], Trial]) -> list[Known]:
        """Those that were run, each once: where the placebo is a repeat, every seed names the same run."""
        return [self.got[key] for key in dict.fromkeys(trial(seed).key for seed in SEEDS) if key in self.got]

    def verdict(self, rule: str | None, name: str = "", once: bool = False) -> Verdict:
        placebos, repeats = self._of_other_seeds(self.control), self._of_other_seeds(self.turned)
        control, turned = self.known(self.control()), self.known(self.turned())
        if name or rule is None:
            return judge_suspicion(name, rule, control, turned, placebos, repeats, self.symptom, once, self.removes, self.finding.symptoms)
        same_again = self.got.get(self.same_again().key)
        if same_again in placebos:
            same_again = None
        verdict = judge(
            rule, control, turned, placebos, repeats, self.symptom, self.finding.severity == "note", bool(self.files), same_again,
            by_heart=self.shows_the_rest, exchanged=self.got.get(self.exchanged().key),
            in_turns=self.bench.in_turns(),
        )  # fmt: skip
        if verdict.status == "refuted" and self.symptom == "loss" and self._loss_at is None and self.bench.in_turns():
            why = "the loss that is trained most often stays as it is; the program trains several in turns, and the finding names none of them"
            return replace(verdict, status="inconclusive", why=why)
        return verdict


def _decide(experiment: Experiment, rule: str | None, name: str = "", once: bool = False) -> Iterator[Event | Verdict]:
    """Run until the verdict stands, or no further run would change it; its last word is the verdict."""
    yield from experiment.first()
    verdict = experiment.verdict(rule, name, once)
    while verdict.more:
        before = len(verdict.trials)
        try:
            yield from experiment.more(verdict.more)
        except OutOfTime:
            break
        verdict = experiment.verdict(rule, name)
        if len(verdict.trials) == before:
            break
    yield verdict


def _settle_one(bench: Bench, finding: Suspected, rewrites: Rewrites, share: int) -> Iterator[Event]:
    rule = rule_named(finding.rule)
    knobs = knobs_for(finding.rule)
    others = [knob for knob in easing([finding.rule, *finding.symptoms]) if knob not in knobs]
    if not knobs and not rewrites(finding) and (rule is None or rule.kind == "cause" or not others):
        why = "no knob changes what this rule suspects, and its lines cannot be rewritten safely, so watching is all there is"
        yield Unsettled(finding.id, finding.rule, why)
        return
    if finding.rule == "crash/exception" and (kind := _of_the_source(bench.chart)):
        yield Unsettled(finding.id, finding.rule, f"{kind} comes from the source or its files, which no knob changes")
        return
    if finding.severity == "note" and symptom_of(finding, bench.chart) == "loss" and _has_learnt(bench.chart):
        yield Unsettled(finding.id, finding.rule, "the run learns, and the finding is only a note: there is no symptom to explain")
        return
    late = bench.reach(_known_at(bench, finding))
    if late:
        yield Note(f"{finding.id}: {late}")
    if finding.rule in (*PROVED_BY_SCORES, *SEEN_IN_SCORES):
        bench.include_the_end()
    best = yield from _best_of(bench, finding, knobs, rewrites, share)
    open_still = best is not None and best.status == "inconclusive" and symptom_of(finding, bench.chart) != "hang"
    if open_still and bench.goes_on_to_the_end():
        yield Note(f"{finding.id}: trials that are shorter than the run leave it open, so they go on as far as it did ({bench.windows:,} steps)")
        best = yield from _best_of(bench, finding, knobs, rewrites, share)
    by_kernels = finding.rule.startswith("hang/openmp") or finding.rule in ("hang/fork-with-live-threads", "hang/dataloader-worker", *STANDSTILLS)
    turned = next((knob for knob in knobs if best is not None and any(known.label == knob.label for known in best.trials)), None)
    if best is not None and by_kernels and turned is not None:
        best = yield from _with_its_pace(bench, finding, turned, best)
    if best is not None:
        yield Settled(finding.id, best)
    if best is None or best.status == "refuted" or (by_kernels and best.status == "confirmed"):
        yield from _try_others(bench, finding, others if best is None or best.status == "refuted" else [*knobs[1:], *others], share)


def _best_of(bench: Bench, finding: Suspected, knobs: Sequence[Knob], rewrites: Rewrites, share: int) -> Generator[Event, None, Verdict | None]:
    """Experiment after experiment, until one settles it; the verdict that says most."""
    best: Verdict | None = None
    for experiment in _experiments(bench, finding, knobs, rewrites, share):
        opens = ("not applicable", "inconclusive") if experiment.files else ("not applicable",)
        if (experiment.files or experiment.shows_the_rest) and best is not None and best.status not in opens:
            continue  # a knob has settled it as far as it can be
        verdict = None
        for event in _decide(experiment, finding.rule):
            if isinstance(event, Verdict):
                verdict = event
            else:
                yield event
        if verdict is not None and (best is None or ORDER.index(verdict.status) < ORDER.index(best.status)):
            best = verdict
        if verdict is not None and verdict.status in ("confirmed", "refuted"):
            break
    return best


def _experiments(bench: Bench, finding: Suspected, knobs: Sequence[Knob], rewrites: Rewrites, share: int) -> Iterator[Experiment]:
    """Each knob that takes the mechanism away, and where none of them does, the guilty lines rewritten; what tells only that the rest is
    sound comes last."""
    rewritten = rewrites(finding)
    for knob in knobs:
        if knob.name != SHOWS_THE_REST:
            yield Experiment(bench, finding, (knob.setting(finding.where),), knob.label, share)
    if rewritten:
        yield Experiment(bench, finding, (), "lines rewritten", share, rewritten)
    for knob in knobs:
        if knob.name == SHOWS_THE_REST:
            yield Experiment(bench, finding, (knob.setting(finding.where),), knob.label, share)


ORDER = ("confirmed", "refuted", "workaround", "inconclusive", "not applicable")


def _with_its_pace(bench: Bench, finding: Suspected, knob: Knob, verdict: Verdict) -> Generator[Event, None, Verdict]:
    """What a way out costs in speed: run once more with nothing beside it, where trials that share the cores say little."""
    if verdict.status not in ("confirmed", "workaround") or symptom_of(finding, bench.chart) != "hang":
        return verdict
    settings = (knob.setting(finding.where), Setting("nothing"))
    alone = bench.trial("knob", f"{knob.label}, alone", settings, watched=[Path(place.file) for place in finding.where], standing=True)
    pace: float | None = None
    try:
        for event in bench.run([alone]):
            if isinstance(event, Done) and event.known.outcome.kind in ("healthy", "stalled"):
                pace = event.known.outcome.pace
            yield event
    except OutOfTime:
        return verdict
    return verdict if pace is None else replace(verdict, why=f"{verdict.why}; with nothing beside it, {1000 * pace:.0f} ms a step")


def _try_others(bench: Bench, finding: Suspected, knobs: Sequence[Knob], share: int) -> Iterator[Event]:
    """What else makes the symptom go away: each knob once. For a hang whose cause is known, that is the table of its cures."""
    for knob in knobs:
        yield from _one_suspicion(bench, finding, knob, share, once=True)


def _one_suspicion(bench: Bench, finding: Suspected, knob: Knob, share: int = 1, once: bool = False) -> Iterator[Event]:
    rule = rule_named(finding.rule)
    cause = finding.rule if rule is not None and rule.kind == "cause" else None
    experiment = Experiment(bench, finding, (knob.setting(finding.where),), knob.label, share, removes=knob.settles)
    if once:
        yield from experiment.run([experiment.control()])
        seen = experiment.known(experiment.control()).outcome
        counted = set(knob.settles) <= set(seen.mechanism)  # what only a rule sees may be there below its threshold
        if counted and (why := nothing_to_remove(knob.settles, seen)):
            yield Settled(finding.id, Verdict(f"knob/{knob.name}", "refuted", why, (experiment.known(experiment.control()),)), knob.changes)
            return
    for event in _decide(experiment, cause, f"knob/{knob.name}", once):
        if isinstance(event, Verdict):
            paced = (yield from _with_its_pace(bench, finding, knob, event)) if once else event
            yield Settled(finding.id, paced, knob.changes)
        else:
            yield event


def suspect(bench: Bench, finding: Suspected, knobs: Sequence[Knob]) -> Iterator[Event]:
    """Test what the user suspects: each knob against the symptom; of several that cure only together, the smallest set."""
    require_sandbox(bench.unsafe)
    late = bench.reach(_known_at(bench, finding))
    if late:
        yield Note(late)
    status: dict[str, str] = {}
    acted: set[str] = set()  # knobs that had something to change: another one would keep the set from being tried at all
    try:
        for number, knob in enumerate(knobs):
            for event in _one_suspicion(bench, finding, knob, len(knobs) - number):
                if isinstance(event, Settled):
                    status[knob.name] = event.verdict.status
                    acted |= {knob.name for known in event.verdict.trials if known.role == "knob" and known.outcome.acted}
                yield event
        able = {knob.name: knob.setting(finding.where) for knob in knobs if knob.name in acted and status[knob.name] != "not applicable"}
        if len(able) > 1 and not set(status.values()) & {"confirmed", "workaround"}:
            yield from _smallest(bench, finding, able)
    except OutOfTime:
        yield Note("the budget is used up; the trials that were run are kept")


def _together(bench: Bench, findings: Sequence[Suspected], verdicts: Mapping[str, Verdict]) -> Iterator[Event]:
    """Several causes, none of which is enough alone: are they together? Two faults can hide each other."""
    open_ones = [f for f in findings if f.id in verdicts and verdicts[f.id].status in ("refuted", "inconclusive")]
    if len(open_ones) < 2 or any(verdict.status == "confirmed" for verdict in verdicts.values()):
        return
    settings = {f.rule: knobs_for(f.rule)[0].setting(f.where) for f in open_ones if knobs_for(f.rule)}
    if len(settings) > 1:
        yield from _smallest(bench, open_ones[0], settings, {f.rule: f.id for f in open_ones})


def _smallest(bench: Bench, finding: Suspected, settings: Mapping[str, Setting], findings: Mapping[str, str] | None = None) -> Iterator[Event]:
    """Of knobs that cure together, the smallest set that does, by leaving out one after the other (delta debugging)."""
    names = list(settings)
    status: dict[frozenset[str], Verdict] = {}

    def decide(chosen: Sequence[str]) -> Generator[Event, None, bool]:
        experiment = Experiment(bench, finding, tuple(settings[name] for name in chosen), " + ".join(chosen))
        for event in _decide(experiment, None, "together"):
            if isinstance(event, Verdict):
                status[frozenset(chosen)] = event
            else:
                yield event
        return status[frozenset(chosen)].status in ("confirmed", "workaround")

    if not (yield from decide(names)):
        yield Note(f"{' + '.join(names)} together do not change the outcome either")
        return
    names = yield from leave_out(names, decide)
    verdict = status[frozenset(names)]
    said = f"only together ({' + '.join(names)}): {verdict.why}" if len(names) > 1 else verdict.why
    for name in names:
        if findings is not None:
            yield Settled(findings[name], Verdict(name, "confirmed", said, verdict.trials))
        else:
            yield Settled(finding.id, Verdict(f"knob/{name}", verdict.status, said, verdict.trials), f"{name}, together with the others")
