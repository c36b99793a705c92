"""Turns the facts of a trial into its outcome: did it learn, and what did the suspected mechanism do.

A mechanism is what the rule itself sees: each trial is judged by the same rules as the run. Where a mechanism has a number, the number
is measured too, because it tells more than yes or no, and also where the rule has nothing to say because the symptom is gone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.curve import Curve
from trainsleuth.case.entries import Parameter
from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules.arbiter import judged
from trainsleuth.rules.catalogue import all_rules
from trainsleuth.rules.halves import in_float16, vanishing
from trainsleuth.rules.kinds import EXAMINED, Missing, Seen, Spot
from trainsleuth.rules.origins import has_recovered
from trainsleuth.rules.stall.dead_units import DEAD, RECTIFIERS
from trainsleuth.trials.lines import as_it_is
from trainsleuth.trials.sandbox import Ended
from trainsleuth.trials.scores import figures, scaler_words, scores
from trainsleuth.trials.trial import FROM_OUTSIDE, Kind, Learning, Outcome, Trial, facts_of

LEAST_DROP = 0.02  # of the loss at the start: less is no learning, however exact
ERRORS = 4.0  # a drop must be this many times its own error
MENDED = {  # rules that read what the program asks for, and the knob that mends it afterwards, unseen by them
    "nan/bad-weights": "finite-weights",
    "stall/mask-inverted": "mask-inverted",
    "precision/optimizer-epsilon": "epsilon",
    "precision/step-without-unscale": "unscaled-in-time",
}
SKIPPED = "stall/scaler-skips-steps"  # the scaler met a bad gradient in every window, so that the loss never became bad
AGAIN = 3  # losses that are not finite, the latest in the last quarter
ALIVE_AGAIN = 0.9  # share of dead units below which a layer is no longer dead, by any standard
POWERS = 100.0
MOST_POINTS = 400
MOST_GRADIENTS = 200
MOST_SAID = 120  # characters of an exception


def measure(trial: Trial, folder: Path, ended: Ended) -> Outcome:
    """Read the facts in a trial's folder; the process that trained most is the one that counts."""
    run = RunChart(facts_of(folder))
    run.refresh()
    charts = list(run.processes.values())
    chart = max(charts, key=lambda chart: (chart.windows, chart.backwards), default=ProcessChart())
    acted = {str(fact["knob"]) for each in charts for fact in each.knobs if fact["k"] == "knob_acted"}
    fired, missing = _judged(run, chart, trial.files)
    fired = {rule: at for rule, at in fired.items() if MENDED.get(rule) not in acted}
    kind, why = _kind(trial, chart, charts, ended, _stood(run, folder))
    if kind in ("healthy", "stalled") and chart.bad_parameters and "nan/loss-not-finite" in fired:
        kind, why = "nan", "gradients or weights are not finite"
    idle = [setting.knob for setting in trial.settings if setting.knob not in (*acted, *FROM_OUTSIDE)]
    if idle and kind in ("healthy", "stalled"):
        kind, why = "not applicable", _why_idle(charts) or f"the knob {idle[0]} found nothing to change"
    curve = _points(trial, chart)
    return Outcome(
        kind=kind,
        why=why,
        learning=learning(curve),
        mechanism={name: number for name, measured in MECHANISMS.items() if (number := measured(run, chart)) is not None},
        windows=chart.windows if chart.optimizers else chart.backwards,  # without an optimizer each backward is a step
        seconds=round(ended.seconds, 2),
        acted=not idle,
        curve=curve,
        fired=fired,
        missing=missing,
        pace=_pace(chart),
        cut=ended.kind == "time",
        crash_kind=str(next((each.crash["kind"] for each in charts if each.crash), "")) if kind == "crash" else "",
        scores=scores(chart, folder / "output.txt"),
        figures=figures(folder / "output.txt"),
        scaler=scaler_words(chart),
        weights=sum(parameter.count for parameter in chart.called_parameters()),
        gradients=_first_gradients(chart),
        not_finite=main.not_finite if (main := _main_loss(trial, chart)) is not None else 0,
    )


def _first_gradients(chart: ProcessChart) -> dict[str, float]:
    known = {parameter.name: parameter.first_gradients[0] for parameter in chart.called_parameters()[:MOST_GRADIENTS] if parameter.first_gradients}
    return {name: size for name, size in known.items() if math.isfinite(size)}


def _why_idle(charts: Sequence[ProcessChart]) -> str:
    return next((str(fact["why"]) for each in charts for fact in each.knobs if fact["k"] != "knob_acted" and "why" in fact), "")


def _stood(run: RunChart, folder: Path) -> str:
    """How long it stood still, for a trial that was looked at from outside and ended because of that."""
    still = run.standstill()
    if still is None or still.recovered_after is not None:
        return ""
    try:
        about = json.loads((folder / "watched" / "case.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        about = {}
    return "" if about.get("exit", {}).get("kind") == "ok" else f"nothing has moved for {still.waited:.0f} s"


def _judged(run: RunChart, chart: ProcessChart, files: Mapping[Path, bytes]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Which rules see their fault in this trial, and at which line of the program as it is; and which cannot tell."""
    fired: dict[str, str] = {}
    missing = []
    for rule in all_rules():
        verdict = judged(rule, run if rule.of_run else chart)
        if isinstance(verdict, Missing):
            missing.append(rule.name)
        elif isinstance(verdict, Seen):
            spot = next((spot for spot in verdict.where if spot is not None), None)
            seen = spot.at if isinstance(spot, Spot) else spot
            at = None if seen is None else as_it_is(files, seen)
            fired[rule.name] = "" if at is None else f"{at.file}:{at.line}"
    return fired, tuple(missing)


def _pace(chart: ProcessChart) -> float | None:
    """Seconds a window, from the times at which windows were written; the first ones warm up."""
    times = chart.window_times
    if len(times) < 4:
        return None
    (early, before), (late, after) = times[len(times) // 4], times[-1]
    return (after - before) / (late - early) if late > early else None


def _kind(trial: Trial, chart: ProcessChart, charts: Sequence[ProcessChart], ended: Ended, stood: str) -> tuple[Kind, str]:
    if stood:
        return "hang", stood
    main = _main_loss(trial, chart)
    if main is not None and _ends_not_finite(main):
        return "nan", "the loss is not finite"
    stopped = any(each.stopped for each in charts)  # one rank may reach the end of the trial before the others, which then lose their partner
    crash = next((each.crash for each in charts if each.crash), None)
    if crash is not None and not stopped:
        said = " ".join(str(crash.get("message")).split())
        return "crash", f"{crash.get('kind')}: {said[:MOST_SAID]}" + ("…" if len(said) > MOST_SAID else "")
    if ended.kind == "exit" and ended.code and not stopped:
        return "crash", f"the program ended with {ended.code}"
    if ended.kind == "memory":
        return "crash", "it used more memory than a trial may"
    if any(fact.get("done") for each in charts for fact in each.knobs):
        return "healthy", "this part returns"
    if trial.hang_after and ended.kind == "time" and chart.windows <= trial.past:
        return "not applicable", "the time was over before it had got past the place where the run stood still"
    if trial.hang_after:
        return "healthy", f"went on for {chart.windows} steps" if chart.windows else "went on to its end"
    if main is None:
        if ended.kind == "time":
            return "not applicable", f"the time was over after {ended.seconds:.0f} s, before its first step"
        return "not applicable", "no training was seen"
    measured = learning(_points(trial, chart))
    return ("healthy", "") if measured is not None and learns(measured) else ("stalled", "the loss does not fall")


def _ends_not_finite(curve: Curve) -> bool:
    again_and_again = curve.not_finite >= AGAIN and not has_recovered(curve)
    return not math.isfinite(curve.last) or again_and_again or (curve.not_finite > 0 and not curve.points)


def _main_loss(trial: Trial, chart: ProcessChart) -> Curve | None:
    """The loss that the run had most of; a trial, which is shorter, may have more of one that comes before it."""
    if trial.loss_at is not None:
        same = [curve for at, curve in chart.losses.items() if as_it_is(trial.files, at) == trial.loss_at]
        near = [curve for at, curve in chart.losses.items() if (at.file, at.function) == (trial.loss_at.file, trial.loss_at.function)]
        if same or near:
            return (same or near)[0]
    main = chart.main_loss()
    return None if main is None else main[1]


def _points(trial: Trial, chart: ProcessChart) -> tuple[tuple[int, float], ...]:
    main = _main_loss(trial, chart)
    if main is None:
        return ()
    points = [(point.to, point.mean) for point in main.points]
    stride = -(-len(points) // MOST_POINTS)
    return tuple(points if stride <= 1 else [_mean(points[at : at + stride]) for at in range(0, len(points), stride)])


def _mean(points: Sequence[tuple[int, float]]) -> tuple[int, float]:
    return points[-1][0], sum(mean for _, mean in points) / len(points)


def learning(curve: Sequence[tuple[int, float]], up_to: int | None = None) -> Learning | None:
    """The loss at the first twentieth and at the last fifth of a curve.

    The noise comes from neighbouring points: their differences hold hardly any of the trend, and the median none of the jumps.
    """
    points = [mean for to, mean in curve if up_to is None or to <= up_to]
    if len(points) < 4:
        return None
    head, tail = points[: max(1, min(4, len(points) // 20))], points[-max(2, min(40, len(points) // 5)) :]
    first, last = sum(head) / len(head), sum(tail) / len(tail)
    noise = last_noise = _noise(points)
    if len(tail) >= 8 and abs(last) * POWERS < abs(first):
        last_noise = _noise(tail)  # a loss that has come down from another power of ten leaves its noise there
    return Learning(
        first=first,
        last=last,
        first_error=noise / math.sqrt(len(head)),
        last_error=last_noise / math.sqrt(len(tail)),
        steps=curve[len(points) - 1][0],
    )


def _noise(points: Sequence[float]) -> float:
    return median(abs(later - earlier) for earlier, later in pairwise(points)) / 0.954


def learns(measured: Learning) -> bool:
    return measured.drop > ERRORS * measured.error and measured.drop > LEAST_DROP * abs(measured.first)


# -- mechanisms that have a number, by the rule that suspects them -----------------------------------------------------


def moving_share(run: RunChart, chart: ProcessChart) -> float:
    """Share of the called models' weights that are trainable and were seen to move."""
    return _share(chart.called_parameters(), lambda p: p.trainable and p.moved > 0)


def orphans_standing(run: RunChart, chart: ProcessChart) -> float:
    """Number of weights that get a gradient, and do not move, because no optimizer holds them."""
    return float(sum(p.count for p in chart.called_parameters() if p.with_gradient and not p.owners and not p.moved))


def discarded_per_window(run: RunChart, chart: ProcessChart) -> float:
    """Micro-batches whose gradients were thrown away, per window of the optimizer that loses most."""
    return max((o.discarded / o.watched for o in chart.optimizers.values() if o.watched), default=0.0)


def asleep_in_training(run: RunChart, chart: ProcessChart) -> float:
    """Mode-sensitive modules in eval mode during forwards that record gradients, at the end of the trial."""
    found = [fact.get("eval_count", 0) for model in chart.models.values() for (_, grad), fact in model.modes.items() if grad]
    return float(max(found, default=0))


def threads_beyond_limit(run: RunChart, chart: ProcessChart) -> float:
    """By how many the threads that torch was told to use exceed the limit of OpenMP, in any process."""
    found = 0.0
    for each in run.processes.values():
        limit = str(each.environment.get("variables", {}).get("OMP_THREAD_LIMIT", ""))
        threads = [count for count, _ in each.threads[-1:]] or [each.environment.get("threads") or 0]
        if limit.isdigit():
            found = max(found, float(threads[0]) - float(limit))
        elif str(each.environment.get("variables", {}).get("OMP_DYNAMIC", "")).lower() == "true":
            found = max(found, float(threads[0]) - 1)
    return max(found, 0.0)


def forks_with_threads(run: RunChart, chart: ProcessChart) -> float:
    """Places that fork while the process has other threads."""
    return float(sum(1 for each in run.processes.values() for fork in each.forks if fork.native_threads > 1))


def loader_workers(run: RunChart, chart: ProcessChart) -> float:
    """Worker processes of the data loaders."""
    loaders = [loader for each in run.processes.values() for loader in each.loaders.values()]
    return float(max((loader.about.get("workers") or 0 for loader in loaders), default=0))


def changed_unseen(run: RunChart, chart: ProcessChart) -> float:
    """Tensors that were changed between forward and backward, unseen by autograd; none reach it where it keeps copies."""
    return 0.0 if _turned(chart, "saved-tensors-copied") else float(len(chart.silent_changes))


def own_backwards(run: RunChart, chart: ProcessChart) -> float:
    """Backwards that the program has written itself; not those that autograd derives in their place."""
    return float(max(0, len(chart.functions) - _turned(chart, "backward-by-autograd")))


def dead_units(run: RunChart, chart: ProcessChart) -> float | None:
    """Share of the units that are zero for every sample, in the worst layer over the last three looks; None where no layer rectifies."""
    shares: dict[str, list[float]] = {}
    for fact in [fact for fact in chart.deep if fact["calls"]][-3:]:
        for row in fact["calls"]:
            if row[3] in RECTIFIERS and row[15] is not None:
                shares.setdefault(f"{row[2]} {row[0]}", []).append(row[15])
    return max((min(found) for found in shares.values()), default=None)


def vanishing_gradients(run: RunChart, chart: ProcessChart) -> float:
    """Share of the backwards looked at in which gradients are too small for float16."""
    found = vanishing(chart, in_float16(chart))
    return found.struck / max(1, found.looks)


def _turned(chart: ProcessChart, knob: str) -> int:
    return sum(1 for fact in chart.knobs if fact["k"] == "knob_acted" and fact["knob"] == knob)


def _share(parameters: Sequence[Parameter], which: Callable[[Parameter], bool]) -> float:
    total = sum(parameter.count for parameter in parameters)
    return sum(parameter.count for parameter in parameters if which(parameter)) / total if total else 0.0


MECHANISMS: dict[str, Callable[[RunChart, ProcessChart], float | None]] = {
    "stall/params-frozen": moving_share,
    "stall/params-not-in-optimizer": orphans_standing,
    "stall/accumulated-gradients-discarded": discarded_per_window,
    "stall/dead-units": dead_units,
    "mode/eval-during-training": asleep_in_training,
    "hang/openmp-thread-limit": threads_beyond_limit,
    "hang/openmp-after-fork": forks_with_threads,
    "hang/fork-with-live-threads": forks_with_threads,
    "hang/dataloader-worker": loader_workers,
    "precision/no-grad-scaler": vanishing_gradients,
    "precision/gradient-underflow": vanishing_gradients,
    "autograd/silently-modified": changed_unseen,
    "autograd/custom-backward-wrong": own_backwards,
}
WORDS = {
    "stall/params-not-in-optimizer": "{:.0f} weights without an owner",
    "stall/params-frozen": "{:.0%} of the weights move",
    "stall/accumulated-gradients-discarded": "{:.1f} lost micro-batches a step",
    "stall/dead-units": "{:.0%} of a layer is dead",
    "mode/eval-during-training": "{:.0f} modules in eval mode",
    "hang/openmp-thread-limit": "{:.0f} threads beyond limit",
    "hang/openmp-after-fork": "{:.0f} forks with threads",
    "hang/fork-with-live-threads": "{:.0f} forks with threads",
    "hang/dataloader-worker": "{:.0f} loader workers",
    "precision/no-grad-scaler": "gradients vanish in {:.0%} of the looks",
    "precision/gradient-underflow": "gradients vanish in {:.0%} of the looks",
    "autograd/silently-modified": "{:.0f} unseen changes",
    "autograd/custom-backward-wrong": "{:.0f} own backwards",
}


def has(rule: str, outcome: Outcome) -> bool | None:
    """Whether the mechanism that a rule suspects is there in an outcome; None where that cannot be told."""
    value = outcome.mechanism.get(rule)
    if value is not None:
        return value < 0.98 if rule == "stall/params-frozen" else value > 0
    if rule in outcome.fired:
        return True
    if rule.startswith(EXAMINED):
        return outcome.kind in ("nan", "crash") or SKIPPED in outcome.fired
    if rule.startswith("hang/"):  # such a rule reads the stacks of a run that stands still, and has nothing to say of one that does not
        return None
    return None if rule in outcome.missing else False


def mechanism_text(rule: str, value: float) -> str:
    """A mechanism's number as the user reads it."""
    return WORDS.get(rule, "{:g}").format(value)


def mechanism_words(rule: str, outcome: Outcome) -> str:
    """What a trial shows of a mechanism, as the user reads it."""
    value = outcome.mechanism.get(rule)
    if value is not None:
        return mechanism_text(rule, value)
    there = has(rule, outcome)
    return "fault seen" if there else "fault gone" if there is False else ""


def mechanism_gone(rule: str, control: float, other: float) -> bool:
    """Whether the suspected mechanism is absent in the other trial, or clearly weaker."""
    if rule == "stall/params-frozen":
        return other > control + 0.02
    if rule == "stall/dead-units":
        return other < ALIVE_AGAIN and control >= DEAD
    return other < (control if rule == "autograd/custom-backward-wrong" else 0.5 * control)


def removed(rule: str, control: Outcome, other: Outcome) -> bool:
    """Whether a mechanism that the control has is gone in the other trial."""
    if rule in control.mechanism and rule in other.mechanism:
        return mechanism_gone(rule, control.mechanism[rule], other.mechanism[rule])
    return has(rule, control) is True and (
        has(rule, other) is False or (rule in other.fired and other.fired[rule] != control.fired.get(rule))
    )
