"""What rules on records share: lines of the log as places, where in a run something happened, and what the log tells of the task."""

from __future__ import annotations

import math

from trainsleuth.case.entries import Place
from trainsleuth.case.record_chart import RunRecord, SourceRecord
from trainsleuth.case.roles import works_against_another
from trainsleuth.case.series import Interval, Series
from trainsleuth.rules.kinds import Spot

UNDER_WATCH = "run it once more under `trainsleuth run`: it names the parameter, the line and the call that the log cannot"
CLASSES = ("num_classes", "n_classes", "nb_classes", "nclasses", "num_labels", "n_class", "num_class", "classes", "クラス数", "类别数", "클래스_수")
ACCUMULATION = ("accumulation_steps", "gradient_accumulation_steps", "grad_accum_steps", "accumulate_grad_batches", "accum_iter",
                "grad_accum", "accum_steps", "gradient_accumulation", "update_freq")  # fmt: skip
FEW = 10
FAR = 500  # steps between the first and the last of a few values


def spot(source: SourceRecord, line: int, note: str = "") -> Spot | None:
    """A line of the log; its text is filled in when the report is made."""
    return Spot(Place(source.path, line), note, code="") if source.quotable and line > 0 else None


def when(step: int | None, epoch: float | None) -> str:
    """`step 250`, `epoch 3`, or nothing where the log does not say."""
    if step is not None and epoch is not None and float(epoch).is_integer():
        return f"epoch {epoch:g}, step {step:,}"
    if step is not None:
        return f"step {step:,}"
    return f"epoch {epoch:g}" if epoch is not None else ""


def at(interval: Interval) -> str:
    return when(interval.step, interval.epoch) or f"line {interval.line:,}"


def runs(source: SourceRecord) -> list[RunRecord]:
    return [source.runs[number] for number in sorted(source.runs)]


def of_run(source: SourceRecord, run: RunRecord) -> str:
    """Which run is meant, where a file holds several."""
    return f" (run {run.number + 1} of {len(source.runs)} in this file)" if len(source.runs) > 1 else ""


def in_a_game(run: RunRecord) -> bool:
    """Losses that work against each other, or rewards: levels and slopes mean little there."""
    return bool(run.of_role("reward")) or sum(works_against_another(loss.name) for loss in run.of_role("loss")) >= 2


def long_enough(series: Series) -> bool:
    """Enough values to speak of a course: ten, or three that are far apart."""
    if series.count >= FEW:
        return True
    first, last = (series.intervals[0], series.intervals[-1]) if series.intervals else (None, None)
    if series.count < 3 or first is None or last is None or first.step is None or last.step is None:
        return False
    return last.step - first.step >= FAR


def classes(source: SourceRecord) -> int | None:
    found = source.setting(*CLASSES)
    return int(found) if isinstance(found, (int, float)) and 2 <= found <= 1_000_000 and float(found).is_integer() else None


def accumulation(source: SourceRecord) -> int:
    found = source.setting(*ACCUMULATION)
    return int(found) if isinstance(found, (int, float)) and 1 <= found <= 4096 else 1


def scale_of(score: Series) -> float:
    """100 where a score is given in percent."""
    return 100.0 if score.most > 1.5 else 1.0


def fell(series: Series) -> float:
    """The share of its first level that a curve has lost by its end; negative if it rose."""
    edge = max(0.1, 1 / max(1, series.count))
    first, last = series.mean_between(0.0, edge), series.mean_between(1 - edge, 1.0)
    return (first - last) / abs(first) if first and math.isfinite(first) else 0.0
