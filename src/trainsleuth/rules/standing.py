"""Where a loss stands: at chance or better, still or moving, taken from the run itself and from theory."""

from __future__ import annotations

import math
from dataclasses import dataclass

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.curve import Curve
from trainsleuth.case.entries import LossCalls, Place
from trainsleuth.case.reading import Fact

ENOUGH = 40  # values of the loss below which nothing is said about its course
MOVES = 0.08  # of its size: a loss whose noise leaves room for such a gain cannot be said to stand still
SAME_NUMBERS = ("Squeeze", "Unsqueeze", "View", "UnsafeView", "ReshapeAlias", "Clone", "Transpose", "Permute", "ToCopy")
CLASS_LOSSES = ("cross_entropy", "nll_loss")


@dataclass(frozen=True)
class Standing:
    """The main loss against its chance level."""

    at: Place
    curve: Curve
    calls: LossCalls
    level: float  # mean of the last quarter, as back-propagated
    chance: float  # what guessing from the frequencies of the targets gives, in the same units
    divisor: float  # by how much the value of the loss function is divided before backward
    classes: int | None
    uniform: float | None  # ln C in the same units
    still: bool  # no real movement from the second quarter to the last
    improvement: float  # share of the first quarter's level that was gained by the end
    mostly_right: bool = False  # the predictions hit the targets far more often than any guess, whatever the loss says

    @property
    def at_chance(self) -> bool:
        return self.level > 0.93 * self.chance and not self.mostly_right

    @property
    def stuck(self) -> bool:
        return self.still and self.at_chance


def standing(chart: ProcessChart) -> Standing | str:
    """The standing of the main loss, or what is missing to tell it."""
    main = chart.main_loss()
    if main is None:
        return "a loss that is back-propagated"
    if len(chart.losses) > 1 and sum(1 for optimizer in chart.optimizers.values() if optimizer.windows) > 1:
        return "a single loss: where several optimizers work against each other, standing still may be an equilibrium"
    at, curve = main
    if curve.count < ENOUGH:
        return f"{ENOUGH} values of the loss (there are {curve.count})"
    if not math.isfinite(curve.last):
        return "a loss that is finite"
    calls = chart.main_loss_call()
    if calls is None or len(calls.samples) < 3:
        return "a loss function that we know (cross entropy, NLL, BCE, MSE, …), seen in three windows"
    reference = chance_of(calls)
    if reference is None:
        return f"a chance level for {calls.function}"
    chance, classes = reference
    summed = str(calls.last["settings"].get("reduction", "mean")) == "sum"
    divisor = _of_a_sum(curve, calls) if summed else divisor_of(curve, calls)
    if divisor is None:
        return "how the value of the loss function relates to what is back-propagated"
    early, early_error, _ = curve.between(0.25, 0.5)
    late, late_error, _ = curve.between(0.75, 1.0)
    gained, error = early - late, math.hypot(early_error, late_error)
    still = gained < max(0.005 * abs(early), 3 * error) and gained + 2 * error < MOVES * abs(early)
    uniform = math.log(classes) / divisor if classes and classes > 1 else None
    return Standing(at, curve, calls, late, chance / divisor, divisor, classes, uniform, still, _gained(curve, late), _mostly_right(calls))


def _mostly_right(calls: LossCalls) -> bool:
    """Whether the latest predictions are more often right than halfway between the most frequent class and all."""
    counts, hits = label_counts(calls), calls.numbers("accuracy")[-3:]
    if not counts or len(hits) < 3 or not sum(counts):
        return False
    most = max(counts) / sum(counts)
    return sum(hits) / len(hits) > most + 0.5 * (1 - most)


def _gained(curve: Curve, late: float) -> float:
    first = curve.between(0.0, 0.25)[0]
    return (first - late) / first if first else 0.0


def divisor_of(curve: Curve, calls: LossCalls) -> float | None:
    """What the loss is divided by before backward (accumulation), found by comparing both ends of the same calls."""
    values = [value for value in calls.numbers("value")[:3] if value and math.isfinite(value)]
    first = [value for value in curve.first_values[:3] if value and math.isfinite(value)]
    if not values or not first:
        return None
    ratio = values[0] / first[0]
    whole = round(ratio)
    if whole >= 1 and abs(ratio - whole) < 0.02 * whole:
        return float(whole)
    return None


def chance_of(calls: LossCalls) -> tuple[float, int | None] | None:
    """The loss of the best guess that ignores the input."""
    last = calls.last
    reduction = str(last["settings"].get("reduction", "mean"))
    if reduction not in ("mean", "sum") or (reduction == "sum" and calls.function not in CLASS_LOSSES) or last.get("weighted"):
        return None
    if calls.function in CLASS_LOSSES:
        classes = int(last["classes"])
        if classes < 2 or any(int(sample["classes"]) != classes for sample in calls.samples if "classes" in sample):
            return None  # one class, or a number of them that changes: a bank of other samples that fills up
        counts = label_counts(calls)
        return (entropy(counts) if counts and len(counts) <= 64 else math.log(classes)), classes
    if max(calls.numbers("target_spread"), default=0.0) < 1e-8:
        return None  # targets that never vary: there is nothing to guess
    if all(map(_picked, calls.samples)) or _targets_wander(calls):
        return None
    guesses = [guess for guess in calls.numbers("guess") if math.isfinite(guess)]
    if len(guesses) < 3:
        return None
    rows = max(2, int(last["target_shape"][0]))
    return sum(guesses) / len(guesses) * rows / (rows - 1), None  # a batch's own mean flatters the guess


def _picked(sample: Fact) -> bool:
    """Whether each prediction is one of several outputs, chosen by an index: the value of an action, whose target is made with the model."""
    made_by = (name for name in sample.get("made_by") or [] if not name.startswith(SAME_NUMBERS))
    return next(made_by, "").startswith(("Gather", "Index"))


def _targets_wander(calls: LossCalls) -> bool:
    """Whether the targets become others while the run goes on, far beyond their spread: they are made with what is trained."""
    means, spreads = calls.numbers("target_mean"), calls.numbers("target_spread")
    third = len(means) // 3
    if third < 2 or not spreads:
        return False
    early, late = means[:third], means[-third:]
    return abs(sum(late) / third - sum(early) / third) > 2 * max(spreads)


def _of_a_sum(curve: Curve, calls: LossCalls) -> float | None:
    """The same for a loss that adds its targets up: against their mean; None unless the first calls agree."""
    found = []
    for sample, value in zip(calls.samples[:3], curve.first_values[:3]):
        targets = math.prod(sample.get("target_shape") or [1]) * (1 - (sample["numbers"].get("ignored") or 0.0))
        whole = sample["numbers"].get("value")
        if not (whole and value and targets and math.isfinite(whole) and math.isfinite(value)):
            return None
        found.append(whole / value / targets)
    agree = len(found) == 3 and max(found) - min(found) < 0.02 * max(found)
    return sum(found) / 3 if agree else None


def label_counts(calls: LossCalls) -> list[float]:
    """How often each class was the target, over all samples."""
    total: list[float] = []
    for sample in calls.samples:
        histogram = sample.get("histogram") or []
        if len(histogram) > len(total):
            total += [0.0] * (len(histogram) - len(total))
        for index, value in enumerate(histogram):
            total[index] += value or 0.0
    return total


def entropy(counts: list[float]) -> float:
    total = sum(counts)
    if total <= 0:
        return 0.0
    return -sum(c / total * math.log(c / total) for c in counts if c > 0)
