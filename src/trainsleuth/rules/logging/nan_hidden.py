"""A NaN that the log does not show.

What it detects
    The loss was NaN or infinite, and the Hugging Face Trainer's filter (`logging_nan_inf_filter`, on by default) wrote ordinary numbers.
    In a record: a gradient norm that is NaN to the end beside a loss that stays finite; values that are written as `null`.
    As a note: a metric that was finite and then is handed to the logger as NaN to the end.
Why it matters
    The curve looks healthy, or flat, or at zero, while the model is broken. Hours are spent on the wrong question.
How it is confirmed
    By the losses themselves, as backward saw them, beside what was logged; a trial logs without the filter (knob `nan-logged`).
How to cure it
    `TrainingArguments(logging_nan_inf_filter=False)`, and find where the NaN comes from. W&B and TensorBoard draw nothing for NaN:
    log a counter of bad steps beside the metric, or let StepLogger do it.
When it is wrong
    A metric that is undefined by nature for a while (no positives in a batch) is only noted.
"""

import math

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.curve import Curve
from trainsleuth.case.entries import place
from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.rules import records
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule, record_rule
from trainsleuth.rules.wording import count


@cause_rule("logging/nan-hidden", settled_by=("nan-logged",))
def rule(chart: ProcessChart) -> Verdict:
    return _filtered(chart) or _undrawn(chart)


def _filtered(chart: ProcessChart) -> Verdict:
    bad = sum(curve.not_finite for curve in chart.losses.values())
    logged = chart.metrics.get("loss")
    if not bad or chart.log_filter is None or not chart.log_filter["on"] or logged is None or logged.not_finite:
        return None
    at = place(chart.log_filter["at"])
    return Seen(
        title=f"the loss was NaN or infinite {count(bad, 'time')}, and the log shows none of it",
        where=[Spot(at, "this training filters NaN out of its log") if at else None],
        evidence=[
            f"{count(bad, 'loss')} of {chart.backwards:,} that were back-propagated are not finite",
            f"{count(logged.count, 'logged value')} of `loss`, all finite; the last is {logged.last:g}",
            "logging_nan_inf_filter is on: the Trainer puts the mean of the other losses in their place, and 0 where there are none",
        ],
        severity="critical",
        statement="logging_nan_inf_filter hides the NaN",
        advice=["TrainingArguments(logging_nan_inf_filter=False), then look for the first NaN."],
    )


def _undrawn(chart: ProcessChart) -> Verdict:
    names = [name for name, curve in chart.metrics.items() if _broke(curve)]
    if not names:
        return None
    at = chart.metric_places.get(names[0])
    return Seen(
        title=f"{names[0]} is NaN to the end: most dashboards draw nothing for it",
        where=[Spot(at, "logs it") if at else None],
        evidence=[
            f"{name}: {chart.metrics[name].not_finite:,} of {chart.metrics[name].count:,} values are not finite"
            for name in names[:6]
        ],
        severity="note",
        statement="the logged value is NaN",
        advice=["Log how many steps were NaN beside the metric, so that the page shows it."],
        certain=False,
    )


def _broke(curve: Curve) -> bool:
    finite = curve.count - curve.not_finite
    return finite >= 3 and curve.not_finite >= 3 and not math.isfinite(curve.last)


@record_rule("logging/nan-hidden", "cause", explains=("nan/loss-not-finite",))
def record(source: SourceRecord) -> Verdict:
    for run in records.runs(source):
        loss = run.main_loss()
        for norm in run.of_role("gradient"):
            if not norm.broken_now or norm.not_finite < 3 or loss is None or loss.not_finite or not loss.count:
                continue
            first = norm.broken[-1]
            if not math.isnan(first.value):
                continue
            return Seen(
                title=f"{norm.name} is NaN from {records.when(first.step, first.epoch) or f'line {first.line:,}'} on, "
                f"and {loss.name} is shown as {loss.text_of(loss.last)}",
                where=[
                    records.spot(source, first.line, "the first NaN"),
                    records.spot(source, loss.last_line, "the loss still looks finite"),
                ],
                evidence=[
                    f"{norm.not_finite:,} of {norm.values:,} norms are not finite; all {loss.count:,} losses are shown as finite"
                ],
                severity="critical",
                step=first.step,
                statement="the loss is NaN too and the logger replaces it",
                advice=["Set logging_nan_inf_filter=False (Hugging Face), and stop the run: its weights are NaN from there on."],
                certain=False,
                settle="the true loss at that step; `trainsleuth run` records it before the logger does",
            )
    nulls = [fact for fact in source.dropped if "null" in str(fact.get("why", ""))]
    if not nulls:
        return None
    names = sorted({str(fact.get("name")) for fact in nulls})
    seen_finite = any(name in series for run in source.runs.values() for series in run.series for name in names)
    return Seen(
        title=f"{', '.join(names[:3])} {'is' if len(names) == 1 else 'are'} written as null in {count(len(nulls), 'place')} at least",
        where=[records.spot(source, nulls[0]["at"], "null instead of a number")],
        evidence=["JSON has no NaN: msgspec, orjson and browsers write null for it; a missing value looks the same"],
        severity="warning" if seen_finite else "note",
        statement="NaN was written as null",
        advice=["Write NaN as a string, or stop on it."],
        certain=False,
        settle="whether the program logs None on purpose there (no validation in that epoch)",
    )
