"""A NaN that the log does not show.

What it detects
    The loss was NaN or infinite, and the Hugging Face Trainer's filter (`logging_nan_inf_filter`, on by default) wrote ordinary numbers.
    As a note: a metric that was finite and then is handed to the logger as NaN to the end.
Why it matters
    The curve looks healthy, or flat, or at zero, while the model is broken. Hours are spent on the wrong question.
How it is confirmed
    By the losses themselves, as backward saw them, beside what was logged.
How to cure it
    `TrainingArguments(logging_nan_inf_filter=False)`, and find where the NaN comes from. W&B and TensorBoard draw nothing for NaN:
    log a counter of bad steps beside the metric, or let StepLogger do it.
When it is wrong
    A metric that is undefined by nature for a while (no positives in a batch) is only noted.
"""

import math

from trainsleuth.case.chart import ProcessChart, place
from trainsleuth.case.curve import Curve
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import count


@cause_rule("logging/nan-hidden")
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
        title=f"{names[0]} is NaN to the end: most pages draw nothing for it",
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
