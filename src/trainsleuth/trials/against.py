"""Two variants of a program, one against the other: does the second really lack capacity, or learn worse?

Both run with the same seeds for the same steps, and both are given one batch again and again. A model that learns one batch by
heart has capacity enough for it; one that cannot do that, where the other can, lacks something. Everything else is speed of learning
or generalisation, and the scores at equal budget tell about those.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Literal

from trainsleuth.trials import ends
from trainsleuth.trials.bench import Bench, OutOfTime, require_sandbox
from trainsleuth.trials.chance import Interval, interval
from trainsleuth.trials.ends import Measure
from trainsleuth.trials.knobs import Knob
from trainsleuth.trials.pairs import collect, long_enough, seeds, with_seed
from trainsleuth.trials.settle import Event, Note
from trainsleuth.trials.trial import Known, Setting

BY_HEART = 0.1  # of the loss at the start: a batch whose loss ends below this is learnt by heart
Claim = Literal["capacity suffices", "lacks capacity", "inconclusive"]


@dataclass(frozen=True)
class Variant:
    """One of the two: its runs over the seeds, and its run on one batch."""

    name: str
    trials: tuple[Known, ...]
    ends: tuple[float | None, ...]
    one_batch: Known

    @property
    def weights(self) -> int:
        return self.trials[0].outcome.weights

    @property
    def pace(self) -> float | None:
        paces = [known.outcome.pace for known in self.trials if known.outcome.pace]
        return median(paces) if paces else None

    @property
    def by_heart(self) -> bool | None:
        """Whether it learns one batch by heart; None where the trial does not tell."""
        outcome = self.one_batch.outcome
        if outcome.kind not in ("healthy", "stalled") or not outcome.acted or outcome.learning is None or outcome.learning.first <= 0:
            return None
        return min((mean for _, mean in outcome.curve), default=outcome.learning.last) <= BY_HEART * outcome.learning.first


@dataclass(frozen=True)
class Against:
    measure: Measure
    base: Variant
    other: Variant
    worse: Interval | None  # by how much the other ends worse; None where runs broke
    claim: Claim

    @property
    def differs(self) -> bool:
        return self.worse is not None and self.worse.excludes_zero


def against(bench: Bench, knob: Knob, count: int, metric: str | None = None) -> Iterator[Event | Against]:
    """Run both variants; the last word is the verdict on the claim."""
    require_sandbox(bench.unsafe)
    yield from long_enough(bench, 2 * count + 2)
    chosen = seeds(count)
    variants: dict[str, tuple[Setting, ...]] = {"as it is": (), knob.name: (knob.setting(),)}
    one_batch = {name: with_seed(bench, f"{name}, one batch", (*settings, Setting("overfit-one-batch")), None) for name, settings in variants.items()}
    runs = {name: [with_seed(bench, name, settings, seed) for seed in chosen] for name, settings in variants.items()}
    got: dict[str, Known] = {}
    try:
        yield from collect(bench, list(one_batch.values()), got, 3)
        yield from collect(bench, [pair[n] for n in range(len(chosen)) for pair in runs.values()], got, 1)
    except OutOfTime:
        yield Note("the budget was used up before both variants had run with every seed; the trials that were run are kept")
        return
    outcomes = [got[one.key].outcome for pair in runs.values() for one in pair]
    bad = next((outcome for outcome in outcomes if outcome.kind in ("crash", "hang", "not applicable")), None)
    if bad is not None:
        yield Note(f"nothing can be compared, because a variant does not get as far as training: {bad.why or bad.kind}")
        return
    measure = ends.choose(outcomes, metric)
    if measure is None:
        yield Note(f"the program logs and prints no {metric}, so there is nothing to compare")
        return
    steps = min((outcome.curve[-1][0] for outcome in outcomes if outcome.curve), default=None)
    base, other = (
        Variant(name, tuple(got[one.key] for one in pair), tuple(ends.value(got[one.key].outcome, measure, steps) for one in pair),
                got[one_batch[name].key])
        for name, pair in runs.items()
    )  # fmt: skip
    worse = [measure.gain(b, a) for a, b in zip(base.ends, other.ends) if a is not None and b is not None]
    found = interval(worse, ends.noise(outcomes, measure)) if len(worse) == len(chosen) else None
    yield Against(measure, base, other, found, _claim(base, other))


def _claim(base: Variant, other: Variant) -> Claim:
    if base.by_heart is None or other.by_heart is None or not (base.by_heart or other.by_heart):
        return "inconclusive"
    return "capacity suffices" if other.by_heart else "lacks capacity"
