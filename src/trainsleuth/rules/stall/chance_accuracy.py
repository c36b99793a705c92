"""The accuracy is that of guessing.

What it detects
    In a log that says how many classes there are: an accuracy that stays within a few parts in a hundred of one over that number, over
    five evaluations and more, without rising.
Why it matters
    The model has learnt nothing that the metric can see.
How it is confirmed
    It is a symptom. A loss that stands still beside it, or one that falls, tells which way to look.
How to cure it
    See the causes of a loss that stands still, and of a metric that does not follow its loss.
When it is wrong
    Hard tasks begin at chance and leave it late. With unequal classes, guessing the most frequent one gives more than one over the number.
"""

from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.case.roles import words_of
from trainsleuth.case.series import Series
from trainsleuth.rules import records
from trainsleuth.rules.kinds import Missing, Seen, Verdict, record_rule
from trainsleuth.rules.wording import number

ACCURACY = frozenset(("acc", "accuracy", "top1", "acc@1", "acc1", "prec@1"))


@record_rule("stall/chance-accuracy")
def rule(source: SourceRecord) -> Verdict:
    classes = records.classes(source)
    for run in records.runs(source):
        scores = [score for score in run.of_role("score") if ACCURACY & set(words_of(score.name)) and score.count >= 5]
        if not scores:
            continue
        if classes is None:
            return Missing("the number of classes, to know what guessing gives")
        loss = run.main_loss()
        if loss is not None and loss.count > 2 and loss.flat_to_the_digit():
            continue  # told by the loss
        if all(_at_chance(score, 1 / classes) for score in scores):
            worst = scores[0]
            return Seen(
                title=f"{worst.name} stays at {worst.text_of(worst.last)}: guessing among {classes} classes gives {number(1 / classes)}",
                where=[records.spot(source, worst.first_line, "the first"), records.spot(source, worst.last_line, "the last")],
                evidence=[f"{s.name}: {s.count:,} values between {s.text_of(s.least)} and {s.text_of(s.most)}, none rising" for s in scores[:3]],
                severity="warning",
                step=worst.last_step,
                statement="what the model predicts has nothing to do with the labels",
                advice=["Overfit one batch: if that fails, the fault is in the loop or the model; if it works, in the data or the labels."],
                certain=False,
                settle=records.UNDER_WATCH,
            )
    return None


def _at_chance(score: Series, chance: float) -> bool:
    scale = records.scale_of(score)
    first, last = score.mean_between(0, 0.3) / scale, score.mean_between(0.7, 1) / scale
    near = max(0.25 * chance, 0.02)
    return score.most / scale < chance + 1.5 * near and abs(last - chance) < near and last <= first + 0.5 * near
