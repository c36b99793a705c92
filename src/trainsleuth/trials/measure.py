"""Turns the facts of a trial into its outcome: did it learn, and what did the suspected mechanism do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median

from trainsleuth.case.chart import Parameter, ProcessChart
from trainsleuth.case.curve import Curve
from trainsleuth.case.reading import FactFollower
from trainsleuth.trials.sandbox import Ended
from trainsleuth.trials.trial import Kind, Learning, Outcome, Trial

LEAST_DROP = 0.02  # of the loss at the start: less is no learning, however exact
ERRORS = 4.0  # a drop must be this many times its own error
MOST_POINTS = 400


def measure(trial: Trial, folder: Path, ended: Ended) -> Outcome:
    """Read the facts in a trial's folder; the process that trained most is the one that counts."""
    charts: dict[str, ProcessChart] = {}
    acted: set[str] = set()
    failed = ""
    for name, fact in FactFollower(folder / "facts").news():
        charts.setdefault(name, ProcessChart()).absorb(fact)
        if fact["k"] == "knob_acted":
            acted.add(str(fact.get("knob")))
        elif fact["k"] in ("knob_failed", "knob_idle"):
            failed = str(fact.get("why", ""))
    turned = [setting.knob for setting in trial.settings]
    idle = [knob for knob in turned if knob not in acted]
    chart = max(charts.values(), key=lambda chart: (chart.windows, chart.backwards), default=ProcessChart())
    crashed = next((chart.crash for chart in charts.values() if chart.crash), None)
    kind, why = _kind(chart, ended, crashed)
    curve = _points(chart)
    if idle and kind in ("healthy", "stalled"):
        kind, why = "not applicable", failed or f"the knob {idle[0]} found nothing to change"
    return Outcome(
        kind=kind,
        why=why,
        learning=learning(curve),
        mechanism={name: measured(chart) for name, measured in MECHANISMS.items()},
        windows=chart.windows,
        seconds=round(ended.seconds, 2),
        acted=not idle,
        curve=curve,
    )


def _kind(chart: ProcessChart, ended: Ended, crash: dict[str, object] | None) -> tuple[Kind, str]:
    main = chart.main_loss()
    if main is not None and _ends_not_finite(main[1]):
        return "nan", "the loss is not finite"
    if crash is not None and not chart.stopped:
        return "crash", f"{crash.get('kind')}: {crash.get('message')}"[:300]
    if ended.kind == "exit" and ended.code:
        return "crash", f"the program ended with {ended.code}"
    if main is None:
        if ended.kind == "time":
            return "hang", f"no training step within {ended.seconds:.0f} s"
        return "not applicable", "no training was seen"
    measured = learning(_points(chart))
    return ("healthy", "") if measured is not None and learns(measured) else ("stalled", "the loss does not fall")


def _ends_not_finite(curve: Curve) -> bool:
    return not math.isfinite(curve.last) or (curve.not_finite > 0 and not curve.points)


def _points(chart: ProcessChart) -> tuple[tuple[int, float], ...]:
    main = chart.main_loss()
    if main is None:
        return ()
    points = [(point.to, point.mean) for point in main[1].points]
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
    noise = median(abs(later - earlier) for earlier, later in pairwise(points)) / 0.954
    return Learning(
        first=sum(head) / len(head),
        last=sum(tail) / len(tail),
        first_error=noise / math.sqrt(len(head)),
        last_error=noise / math.sqrt(len(tail)),
        steps=curve[len(points) - 1][0],
    )


def learns(measured: Learning) -> bool:
    return measured.drop > ERRORS * measured.error and measured.drop > LEAST_DROP * abs(measured.first)


# -- mechanisms: one number each, by the rule that suspects it ---------------------------------------------------------


def moving_share(chart: ProcessChart) -> float:
    """Share of the called models' weights that are trainable and were seen to move."""
    return _share(chart.called_parameters(), lambda p: p.trainable and p.moved > 0)


def orphans_standing(chart: ProcessChart) -> float:
    """Number of weights that get a gradient, and do not move, because no optimizer holds them."""
    return float(sum(p.count for p in chart.called_parameters() if p.with_gradient and not p.owners and not p.moved))


def discarded_per_window(chart: ProcessChart) -> float:
    """Micro-batches whose gradients were thrown away, per window of the optimizer that loses most."""
    return max((o.discarded / o.watched for o in chart.optimizers.values() if o.watched), default=0.0)


def asleep_in_training(chart: ProcessChart) -> float:
    """Mode-sensitive modules in eval mode during forwards that record gradients, at the end of the trial."""
    found = [fact.get("eval_count", 0) for model in chart.models.values() for (_, grad), fact in model.modes.items() if grad]
    return float(max(found, default=0))


def _share(parameters: Sequence[Parameter], which: Callable[[Parameter], bool]) -> float:
    total = sum(parameter.count for parameter in parameters)
    return sum(parameter.count for parameter in parameters if which(parameter)) / total if total else 0.0


MECHANISMS: dict[str, Callable[[ProcessChart], float]] = {
    "stall/params-frozen": moving_share,
    "stall/params-not-in-optimizer": orphans_standing,
    "stall/accumulated-gradients-discarded": discarded_per_window,
    "mode/eval-during-training": asleep_in_training,
}


def mechanism_text(rule: str, value: float) -> str:
    """A mechanism's number as the user reads it."""
    if rule == "stall/params-frozen":
        return f"{value:.0%} of the weights move"
    if rule == "stall/params-not-in-optimizer":
        return f"{value:.0f} weights without an owner"
    if rule == "stall/accumulated-gradients-discarded":
        return f"{value:.1f} lost micro-batches a step"
    if rule == "mode/eval-during-training":
        return f"{value:.0f} modules in eval mode"
    return f"{value:g}"


def mechanism_gone(rule: str, control: float, other: float) -> bool:
    """Whether the suspected mechanism is absent in the other trial, or clearly weaker."""
    if rule == "stall/params-frozen":
        return other > control + 0.02
    return other < 0.5 * control
