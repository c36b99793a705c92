"""The validation loss rises while the training loss goes on falling.

What it detects
    In a log: the validation loss had its best value in the first 60 % of the run, has risen by a fifth since, and rises still, while the
    training loss fell.
Why it matters
    All that was trained after the best point has made the model worse on what it has not seen.
How it is confirmed
    By the two curves. Whether the best checkpoint was kept is not in the log.
How to cure it
    Keep the checkpoint of the best validation loss, stop early; more data, augmentation, weight decay or dropout.
When it is wrong
    Accuracy may rise while the loss does too (a model that grows overconfident): then it is a note. A run that stopped early shows a short
    rise at its end: silent.
"""

from itertools import pairwise

from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.case.series import Series
from trainsleuth.rules import records
from trainsleuth.rules.kinds import Missing, Seen, Verdict, record_rule
from trainsleuth.rules.wording import number, percent

FEWEST = 8


@record_rule("validation/overfitting", "cause")
def rule(source: SourceRecord) -> Verdict:
    for run in records.runs(source):
        train, held_out = run.main_loss(), run.held_out_loss()
        if train is None or held_out is None or held_out.count < FEWEST or train.count < FEWEST:
            return Missing(f"{FEWEST} values of a training loss and of a validation loss")
        if records.in_a_game(run) or held_out.least <= 0:
            continue
        best = min(held_out.intervals, key=lambda interval: interval.mean)
        end = held_out.mean_between(0.85, 1.0)
        if best.to > 0.6 * held_out.count or end < 1.2 * best.mean or not _rises(held_out, best.to) or records.fell(train) < 0.1:
            continue
        if end - best.mean < 4 * _usual_change(held_out):
            continue
        better = [score for score in run.of_role("score", split="val") if _still_improves(score)]
        return Seen(
            title=f"{held_out.name} was best at {records.at(best)} and has risen by {percent(end / best.mean - 1)} since",
            where=[records.spot(source, best.line, "the best"), records.spot(source, held_out.last_line, "the last")],
            evidence=[
                f"{held_out.name} {number(held_out.first)} → {number(best.mean)} → {number(end)}; "
                f"{train.name} {number(train.first)} → {number(train.last)}",
                *[f"{score.name} still improves: {score.text_of(score.first)} → {score.text_of(score.last)}" for score in better[:2]],
            ],
            severity="note" if better else "warning",
            step=best.step,
            statement="the model learns its training data by heart",
            advice=["Use the checkpoint of the best validation loss, and stop early; then augmentation, weight decay, dropout or more data."],
            certain=False,
            settle="the log cannot say which checkpoint was kept",
        )
    return None


def _rises(series: Series, since: int) -> bool:
    """Whether the part after the best is a rise and not one bad value."""
    after = [interval.mean for interval in series.intervals if interval.to > since]
    third = max(1, len(after) // 3)
    parts = [after[:third], after[third : 2 * third], after[2 * third :]]
    means = [sum(part) / len(part) for part in parts if part]
    return len(after) >= 4 and all(a < b for a, b in pairwise(means))


def _usual_change(series: Series) -> float:
    """How much two neighbouring values differ, by the median."""
    changes = sorted(abs(after.mean - before.mean) for before, after in pairwise(series.intervals))
    return changes[len(changes) // 2]


def _still_improves(score: Series) -> bool:
    return score.count >= FEWEST and score.mean_between(0.8, 1.0) > score.mean_between(0.4, 0.6)

