"""The loss falls and the metric does not follow.

What it detects
    CTC: targets that contain the blank's index, targets longer than their inputs, or a best path of nothing but blanks although the
    loss has fallen. Otherwise: a logged accuracy that stays at chance while the accuracy at the loss call has risen.
    From a log alone: the training loss has lost half of its height and more, and a score stands where it began, low.
Why it matters
    The loss measures one thing, the user wants another. Either the metric's code is wrong or the loss rewards something useless.
How it is confirmed
    For CTC by the numbers at the loss, and in a trial with targets that fit (knob `targets-fit`); for a metric by computing the accuracy from
    the same logits and targets, and by a trial whose metric code alone is rewritten.
How to cure it
    CTC: keep the blank out of the alphabet, give the model at least as many frames as symbols, train longer or lower the frame rate.
    Metric: look at the axis of the argmax, at stale predictions, at the pairing of predictions and targets.
When it is wrong
    Validation accuracy may lag behind; only metrics that stay at chance to the end while training accuracy is high count.
"""

import math
import re

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import LossCalls
from trainsleuth.case.record_chart import RunRecord, SourceRecord
from trainsleuth.case.roles import words_of
from trainsleuth.case.series import Series
from trainsleuth.rules import records
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule, record_rule
from trainsleuth.rules.wording import number, percent

ACCURACY = re.compile(r"(?i)(^|[^a-z])(acc|accuracy|top-?1|hit)")


@cause_rule("stall/metric-does-not-follow-loss", explains=("stall/flat-loss",), structural=False, settled_by=("targets-fit",))
def rule(chart: ProcessChart) -> Verdict:
    for calls in chart.loss_calls.values():
        if calls.function == "ctc_loss":
            return _ctc(chart, calls)
    return _logged(chart)


def _ctc(chart: ProcessChart, calls: LossCalls) -> Verdict:
    if len(calls.samples) < 2:
        return Missing("two looks at the CTC loss")
    blank = calls.last["settings"].get("blank", 0)
    at = Spot(calls.at, "called here") if calls.at else None
    used, long_share = max(calls.numbers("blank_in_targets")), max(calls.numbers("too_long"))
    if used > 0:
        return Seen(
            title=f"the blank's index {blank} is also a label: CTC can never emit it",
            where=[at],
            evidence=[f"{percent(used)} of the target symbols are {blank}, which CTC reads as blank"],
            step=2,
            statement="labels and blank share an index",
            advice=["Shift the labels by one, or put the blank behind the last label (`blank=C`)."],
        )
    if long_share > 0:
        silent = calls.last["settings"].get("zero_infinity")
        return Seen(
            title=f"{percent(long_share)} of the targets are longer than their inputs: CTC cannot align them",
            where=[at],
            evidence=[
                f"mean target length {number(calls.numbers('target_length')[-1])}, mean input length {number(calls.numbers('input_length')[-1])}",
                "zero_infinity=True turns their infinite loss into 0, so nothing shows" if silent else "their loss is infinite",
            ],
            severity="critical" if long_share > 0.02 else "warning",
            step=2,
            statement="the model gives fewer frames than the target has symbols",
            advice=["Lower the stride of the model, or drop these samples; check the lengths you pass."],
        )
    shares, main = calls.numbers("blank_share"), chart.main_loss()
    if main is None or main[1].count < 100 or len(shares) < 4:
        return Missing("a hundred steps of CTC, to tell a collapse from its usual start with blanks")
    first, last = main[1].between(0, 0.1)[0], main[1].between(0.9, 1)[0]
    if min(shares[-3:]) < 0.999 or not last < 0.7 * first:
        return None
    return Seen(
        title="the loss has fallen, and the best path is still nothing but blanks",
        where=[at],
        evidence=[
            f"loss {number(first)} → {number(last)}; share of blanks among the best symbols {percent(shares[-1])} in the last looks"
        ],
        severity="warning",
        step=main[1].count,
        statement="CTC has collapsed to blanks: any decoder gives empty text",
        advice=["Train on (blanks come first and go), raise the learning rate, or lower the number of frames per symbol."],
    )


def _logged(chart: ProcessChart) -> Verdict:
    calls, main = chart.main_loss_call(), chart.main_loss()
    if calls is None or main is None or calls.last.get("target_kind") != "index":
        return None
    ours = calls.numbers("accuracy")
    classes = int(calls.last["classes"])
    if len(ours) < 4 or classes < 2:
        return Missing("four looks at logits and labels")
    reached = sum(ours[-3:]) / 3
    chance = 1 / classes
    if reached < chance + 0.5 * (1 - chance):
        return None
    for name, curve in chart.metrics.items():
        if not ACCURACY.search(name) or curve.count < 5 or curve.least < 0:
            continue
        scale = 100.0 if curve.most > 1.5 else 1.0
        late, _, _ = curve.between(0.5, 1.0)
        late /= scale
        if math.isnan(late) or late > chance + 0.25 * (reached - chance):
            continue
        return Seen(
            title=f"the logged {name} stays at {number(late)} while the accuracy at the loss is {number(reached)}",
            where=[Spot(at, "logged here") if (at := chart.metric_places.get(name)) else None, calls.at],
            evidence=[
                f"{curve.count} values of {name}: between {number(curve.least)} and {number(curve.most)}; chance is {number(chance)}",
                f"accuracy from the logits and labels of the loss call: {number(ours[0])} → {number(reached)}",
                f"loss {number(main[1].first)} → {number(main[1].between(0.9, 1.0)[0])}",
                f"the scores at the loss have the shape {tuple(calls.last['input_shape'])}, with the classes at axis 1",
            ],
            severity="warning",
            step=main[1].count,
            statement="the metric's own code does not measure what the model predicts",
            advice=["Check the axis of the argmax, stale predictions, and whether predictions and targets are paired."],
        )
    return None


@record_rule("stall/metric-does-not-follow-loss")
def record(source: SourceRecord) -> Verdict:
    for run in records.runs(source):
        loss = run.main_loss() or run.held_out_loss()
        scores = [s for s in run.of_role("score", "error") if s.count >= 5 and (s.role == "score" or {"cer", "wer"} & set(words_of(s.name)))]
        if loss is None or loss.count < 5:
            return Missing("five values of the loss")
        if not scores or records.in_a_game(run) or records.fell(loss) < 0.5:
            continue
        stuck = [score for score in scores if _stands_low(score)]
        if not stuck or len(stuck) < len(scores):
            continue  # as long as one score follows, the metric's code and the loss agree
        return _not_following(source, run, loss, stuck)
    return None


def _stands_low(score: Series) -> bool:
    """Where it began, to the end, and far from its goal."""
    scale = records.scale_of(score)
    first, last = score.mean_between(0.0, 0.3) / scale, score.mean_between(0.7, 1.0) / scale
    if score.role == "score":
        return score.most / scale < 0.35 and last <= first + 0.02
    return min(score.least / scale, last) > 0.8 and last >= first - 0.02


def _not_following(source: SourceRecord, run: RunRecord, loss: Series, stuck: list[Series]) -> Seen:
    worst = stuck[0]
    return Seen(
        title=f"{loss.name} falls by {percent(records.fell(loss))}, and {worst.name} stays at {worst.text_of(worst.last)}"
        + records.of_run(source, run),
        where=[records.spot(source, worst.first_line, "the first"), records.spot(source, worst.last_line, "the last")],
        evidence=[
            f"{loss.name} {loss.text_of(loss.first)} → {loss.text_of(loss.last)} in {loss.count:,} values",
            *[f"{s.name} {s.text_of(s.first)} → {s.text_of(s.last)}, between {s.text_of(s.least)} and {s.text_of(s.most)}" for s in stuck[:3]],
        ],
        severity="warning",
        step=loss.last_step,
        statement="the loss rewards something that the metric does not measure, or the metric's code is wrong",
        advice=[
            "Compute the metric on one training batch, from the same outputs that the loss sees; it must rise with the loss.",
            "For CTC look at the share of blanks in the best path; then at the decoder, the alphabet's order, and the pairing of texts.",
        ],
        certain=False,
        settle="overfit one batch: if the metric then rises, the code is right and the model or the data are short of something; "
        "under `trainsleuth run` the outputs at the loss are looked at",
    )
