"""What the end of a trial is measured by: the program's own score if it logs or prints one, else its training loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trainsleuth.case.roles import role_of, split_of, words_of
from trainsleuth.trials.measure import learning
from trainsleuth.trials.trial import Outcome

BROKEN = ("nan", "crash", "hang", "not applicable")
TRAINING_LOSS = "training loss"
SUMS_UP = ("hmean", "f1", "map", "miou", "iou", "dice", "accuracy", "acc", "acc1", "top1", "auc", "psnr", "bleu", "cer", "wer")


@dataclass(frozen=True)
class Measure:
    """A metric, and which way is better."""

    name: str
    higher: bool

    def gain(self, before: float, after: float) -> float:
        return after - before if self.higher else before - after


def choose(outcomes: Sequence[Outcome], asked: str | None = None) -> Measure | None:
    """The measure that all of these have; None if the user asked for one that they do not have."""
    whole = [outcome for outcome in outcomes if outcome.kind not in BROKEN]
    common = [name for name in (whole[0].scores if whole else ()) if all(name in outcome.scores for outcome in whole)]
    if asked is not None:
        found = [name for name in common if set(words_of(asked)) <= set(words_of(name))]
        if found:
            return Measure(found[0], role_of(found[0]) == "score")
        return Measure(TRAINING_LOSS, False) if asked in ("loss", TRAINING_LOSS) else None
    best = min(common, key=_rank, default=None)
    return Measure(TRAINING_LOSS, False) if best is None else Measure(best, role_of(best) == "score")


def _rank(name: str) -> tuple[int, int, int]:
    """Scores before errors before losses, held-out ones first, and those that sum up the others first."""
    role = {"score": 0, "error": 1}.get(role_of(name), 2)
    sums_up = min((SUMS_UP.index(word) for word in words_of(name) if word in SUMS_UP), default=len(SUMS_UP))
    return role, 0 if split_of(name) == "val" else 1, sums_up


def value(outcome: Outcome, measure: Measure, steps: int | None = None) -> float | None:
    """Where a trial ended; None where it broke, or does not tell."""
    if outcome.kind in BROKEN:
        return None
    if measure.name != TRAINING_LOSS:
        return outcome.scores.get(measure.name)
    measured = learning(outcome.curve, steps)
    return None if measured is None else measured.last


def noise(outcomes: Sequence[Outcome], measure: Measure) -> float:
    """The error that the noise from step to step leaves in a difference of two ends; a score has none that is known."""
    if measure.name != TRAINING_LOSS:
        return 0.0
    errors = [outcome.learning.last_error for outcome in outcomes if outcome.learning is not None]
    return 2**0.5 * max(errors, default=0.0)
