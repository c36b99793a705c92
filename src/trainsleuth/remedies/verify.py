"""Tries a remedy: runs the program as it is and as it would be, judges both by the same rules, and says what changed.

Verified means: the finding is gone, nothing new and worse came instead, and the outcome is better. A crash, a NaN or a standstill that is
gone is better; otherwise the loss must end clearly lower. Some faults do their harm elsewhere than in the training loss (validation
in train mode, one rank's data twice); there it is enough that the finding is gone and the loss is not worse.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainsleuth.case.folder import Case
from trainsleuth.case.run_chart import RunChart
from trainsleuth.remedies.desk import Diagnosed
from trainsleuth.remedies.patch import Patch
from trainsleuth.rules.arbiter import Diagnosis, diagnose
from trainsleuth.rules.catalogue import rule_named
from trainsleuth.rules.kinds import EXAMINED, STANDSTILLS
from trainsleuth.rules.origins import stopped_by_itself
from trainsleuth.rules.wording import loss
from trainsleuth.trials import precision, sandbox
from trainsleuth.trials.bench import Bench, Done
from trainsleuth.trials.measure import ERRORS, has, removed
from trainsleuth.trials.runs import compared, gains
from trainsleuth.trials.settle import Event
from trainsleuth.trials.trial import Known, Outcome, Trial, facts_of

MOST_WINDOWS = 1000
WILD = 100.0  # times the highest loss
ACCURACY_LOSS = "precision/accuracy-loss"
BROKEN = ("crash", "nan", "hang", "not applicable")
NOT_LEARNING = frozenset(("stall/flat-loss", "stall/uniform-predictions"))
HARM_ELSEWHERE = (
    "mode/", "ranks/", "data/labels", "data/not-shuffled", "stall/probabilities-not-logs",
    "data/workers-share", "data/end-never", "schedule/step-order", "schedule/reset-on-resume", "stall/metric",
    "logging/", "precision/", "autograd/silently", "autograd/custom-backward", "checkpoint/random", "checkpoint/restores", "nan/bad-sample",
)  # fmt: skip


@dataclass(frozen=True)
class Checked:
    """What came out: the pair of trials, each with a line for people."""

    patch: Patch
    ok: bool
    why: str
    trials: tuple[Known, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Shown:
    """One run, seen by the rules."""

    outcome: Outcome | None  # None: the recorded run itself
    rules: frozenset[str]
    loud: frozenset[str]
    windows: int
    ended: bool
    crashed: bool
    stood: bool
    symptoms: frozenset[str] = frozenset()  # those that the findings explain, too

    @property
    def learns_nothing(self) -> bool:
        return bool((self.rules | self.symptoms) & NOT_LEARNING)

    def broken(self, rule: str) -> str:
        """How the run broke, if it did: the words for it."""
        if self.stood or (self.outcome is not None and self.outcome.kind == "hang"):
            return "it stands still"
        if self.outcome is not None and self.outcome.kind == "crash":
            return self.outcome.why or "it crashes"
        if self.outcome is not None and self.outcome.kind == "nan":
            return "the loss is not finite"
        return ""


def check(bench: Bench, finding: Diagnosed, patch: Patch, windows: int | None = None) -> Iterator[Event | Checked]:
    """Run the trials; the last thing yielded is what they say."""
    reason = None if bench.unsafe else sandbox.available()
    if reason is not None:
        raise sandbox.SandboxError(sandbox.refusal(reason))
    if finding.rule == ACCURACY_LOSS:
        yield from _check_precision(bench, patch)
        return
    recorded = _shown(bench.case.facts, None)
    named = rule_named(finding.rule)
    first_seen = getattr(finding, "step", None) if named is not None and named.structural else None  # of others it is where they were judged
    bench = replace(bench, windows=windows or _windows(bench, recorded, first_seen or 0))
    watched = [Path(place.file) for place in finding.where]
    loss_at = bench.loss_named_by(finding.where)
    remedy = bench.trial("remedy", "patched", files=patch.files, watched=watched, loss_at=loss_at)
    if recorded.stood:
        remedy = replace(remedy, hang_after=bench.hang_after())
    wanted = [remedy]
    if not recorded.stood:  # a run that stood still is its own control: to let it stand again only takes time
        wanted.insert(0, bench.trial("control", "control", watched=watched, loss_at=loss_at))
    got: dict[str, Known] = {}
    for events in _runs(bench, patch, wanted):
        for event in events:
            if isinstance(event, Done):
                got[event.known.key] = event.known
            yield event
    trials = tuple(got[one.key] for one in wanted)
    after = _shown(facts_of(bench.case.trials / trials[-1].id), trials[-1].outcome)
    before = recorded if recorded.stood else _shown(facts_of(bench.case.trials / trials[0].id), trials[0].outcome)
    ok, why = judge(finding.rule, before, after, bench.in_turns())
    by_number = finding.rule not in before.rules  # the rule itself needs more than these trials show
    lines = (_line("before", finding.rule, before, by_number), _line("after", finding.rule, after, by_number))
    yield Checked(patch, ok, why, trials, lines)


def _check_precision(bench: Bench, patch: Patch) -> Iterator[Event | Checked]:
    """A loss of accuracy is no matter of one run: the patched program runs with every seed that the loss was measured with."""
    done = Checked(patch, False, "16 bit and 32 bit could not be compared again", (), ())
    for event in precision.check(bench, patch.files):
        if not isinstance(event, precision.Patched):
            yield event
            continue
        name = event.known.measure.name
        lines = [f"{side.label:<8} {name} {side.words()}" for side in (event.known.full, event.known.half)]
        lines += [f"{known.label:<16} {name} {'broke' if end is None else f'{end:.4g}'}" for known, end in zip(event.side.trials, event.side.ends)]
        share = f"{100 * min(max(event.share, 0.0), 1.0):.0f} % of what 16 bit loses is won back over {len(event.side.ends)} seeds"
        why = share if event.known.lost else "no loss by 16 bit is shown again, so there is nothing to win back"
        done = Checked(patch, event.ok, why, event.side.trials, tuple(lines))
    yield done


def _windows(bench: Bench, recorded: Shown, known_at: int) -> int:
    """As many steps as the run had, up to a limit; more, as far as the time allows, where only what comes later can tell: a run that broke must
    come past that point, and what was known at a late step must be reached."""
    needed = 2 * recorded.windows if recorded.crashed or recorded.stood else known_at
    affordable = int(bench.left() / 4 / max(bench.seconds_a_window(), 1e-6))
    return max(bench.windows, min(recorded.windows, MOST_WINDOWS), min(needed, max(MOST_WINDOWS, affordable)))


def _runs(bench: Bench, patch: Patch, wanted: Sequence[Trial]) -> Iterator[Iterator[Event]]:
    """All side by side; where variables change, the remedy after the control, with another command."""
    if not patch.environment:
        yield bench.run(wanted)
        return
    if len(wanted) > 1:
        yield bench.run(wanted[:-1], share=2)
    about = {**bench.case.about, "command": [*_env(patch), *bench.case.command]}
    yield replace(bench, case=Case(bench.case.folder, about)).run(wanted[-1:])


def _env(patch: Patch) -> list[str]:
    """The words of env(1) that set and take away the variables."""
    taken = [word for name, value in patch.environment.items() if value is None for word in ("-u", name)]
    return ["env", *taken, *(f"{name}={value}" for name, value in patch.environment.items() if value is not None)]


def _shown(facts: Path, outcome: Outcome | None) -> Shown:
    run = RunChart(facts)
    run.refresh()
    diagnosis: Diagnosis = diagnose(run)
    charts = run.training() or list(run.processes.values())
    return Shown(
        outcome,
        frozenset(finding.rule for finding in diagnosis.findings),
        frozenset(finding.rule for finding in diagnosis.findings if finding.severity != "note"),
        max((chart.windows for chart in charts), default=0),
        bool(charts) and all(chart.ended or chart.stopped for chart in charts),
        bool(run.crashes()) or any(map(stopped_by_itself, run.processes.values())),
        run.standstill() is not None,
        frozenset(symptom for finding in diagnosis.findings for symptom in finding.symptoms),
    )


def judge(rule: str, before: Shown, after: Shown, in_turns: bool = False) -> tuple[bool, str]:
    """Whether the second run shows the cure of what the first one has; losses that work against each other do not fall by it."""
    assert after.outcome is not None
    measured = before.outcome is not None and rule not in before.rules and has(rule, before.outcome) is True  # it is seen by its number only
    alike = before.outcome is not None and rule in before.outcome.missing and before.learns_nothing  # the rule lacks facts in a short run
    shown = rule in before.rules or measured or alike or (rule.startswith(EXAMINED) and before.outcome is not None and has(rule, before.outcome))
    if not shown and not before.stood:
        return False, "the program as it is did not show the finding again, so nothing can be compared"
    if before.stood:
        return _went_on(rule, before, after)
    if rule.startswith("logging/") and before.outcome is not None and after.outcome.kind == before.outcome.kind:
        gone = rule not in after.rules
        return gone, "the finding is gone; what the log shows is no matter of the loss" if gone else "the patched program shows the same finding"
    if after.outcome.kind in BROKEN:
        return False, f"the patched program: {after.outcome.why or after.outcome.kind}"
    only_a_note = rule in before.loud and rule in after.rules - after.loud  # what may be meant, now that it learns
    if (rule in after.rules and not only_a_note) or (measured and before.outcome is not None and not removed(rule, before.outcome, after.outcome)):
        return False, "the patched program shows the same finding"
    new = sorted(after.loud - before.loud - set(STANDSTILLS))
    if new:
        return False, f"the finding is gone, but the patched program shows {new[0]}"
    broke = before.broken(rule)
    assert before.outcome is not None
    if broke and (wild := _wild(before.outcome, after.outcome)):
        return False, f"the patched program runs on, but {wild}"
    if broke:
        return True, f"the patched program runs on (before: {broke})"
    if gains(before.outcome, after.outcome):
        return True, f"the finding is {'only a note now' if only_a_note else 'gone'}, and the loss ends lower"
    if rule.startswith(HARM_ELSEWHERE):
        return True, "the finding is gone; its harm is not in the training loss"
    if rule == "stall/inputs-and-targets-misaligned" and not before.learns_nothing:
        return True, "the finding is gone: each target belongs to its input; what was learnt before was another task, with a loss of its own"
    if rule == "stall/no-gradient" and in_turns:
        return True, "the finding is gone: these layers learn now; of losses that work against each other none need fall by that"
    if before.learns_nothing and not after.learns_nothing:
        return True, "the finding is gone, and the loss no longer stands still"
    return False, f"the finding is gone, but {_no_gain(before.outcome, after.outcome)}"


def _wild(before: Outcome, after: Outcome) -> str:
    """A loss that is finite and far above all that the program had before it broke: one nonsense in the place of another."""
    if after.learning is None or len(before.curve) < 4:
        return ""
    highest = max(abs(loss) for _, loss in before.curve)
    return f"its loss is {after.learning.last:.4g}, and was at most {highest:.4g}" if after.learning.last > WILD * highest else ""


def _went_on(rule: str, before: Shown, after: Shown) -> tuple[bool, str]:
    assert after.outcome is not None
    if after.outcome.kind == "crash":
        return False, f"it no longer stands still, but ends with {after.outcome.why}"
    if after.ended and after.windows >= before.windows:
        return True, f"it no longer stands still: {after.windows:,} steps, to its end"
    if after.windows > 1.5 * before.windows + 10:
        return True, f"it no longer stands still: {after.windows:,} steps where it stood at {before.windows:,}"
    return False, f"the patched program did not come past the point where it stood ({after.windows:,} steps)"


def _no_gain(before: Outcome, after: Outcome) -> str:
    one, other = compared(before, after)
    if one is None or other is None:
        return "there are too few steps to compare"
    error = (one.last_error**2 + other.last_error**2) ** 0.5
    numbers = f"{loss(one.last)} before, {loss(other.last)} after"
    if other.last - one.last <= ERRORS * error:
        return f"the loss does not tell the difference within {after.windows} steps ({numbers})"
    return f"the loss ends higher, not lower ({numbers})"


def _line(label: str, rule: str, shown: Shown, by_number: bool) -> str:
    """One line for people: the loss at both ends or how it broke, and whether the finding is there."""
    measured = by_number and shown.outcome is not None and has(rule, shown.outcome) is True
    quiet = "only a note" if rule in shown.rules else "finding gone"
    there = "" if rule.startswith("hang/") else "finding there" if rule in shown.loud or measured else quiet
    if shown.outcome is None:
        return f"{label:<8} stood still after {shown.windows:,} steps (the recorded run)"
    learning = shown.outcome.learning
    if shown.outcome.kind in BROKEN or learning is None:
        words = f"{shown.outcome.kind}: {shown.outcome.why}" if shown.outcome.why else shown.outcome.kind
        return f"{label:<8} {words}" + ("" if rule.startswith(EXAMINED) else f"   {there}")  # how it broke is the finding itself
    return f"{label:<8} loss {loss(learning.first)} → {loss(learning.last)} in {shown.windows:,} steps   {there}"


def environment_words(patch: Patch, command: list[str]) -> str:
    """How to run the program with the changed variables."""
    return shlex.join([*_env(patch), *command])
