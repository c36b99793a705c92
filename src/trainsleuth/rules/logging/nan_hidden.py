"""NaN is there, and the log does not show it.

What it detects
    A gradient norm that is NaN to the end beside a loss that stays finite (Hugging Face's Trainer replaces NaN losses in its log); values
    that are written as `null`, as JSON libraries do with NaN.
Why it matters
    The curve looks flat or has gaps, and the run goes on for days.
How it is confirmed
    By the log itself: gradients cannot be NaN when the loss they come from was well and is used.
How to cure it
    `logging_nan_inf_filter=False`; write NaN as a string or stop on it.
When it is wrong
    A gradient scaler skips single steps with an infinite norm and goes on: only a norm that stays NaN counts.
"""

import math

from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.rules import records
from trainsleuth.rules.kinds import Seen, Verdict, record_rule
from trainsleuth.rules.wording import count


@record_rule("logging/nan-hidden", "cause", explains=("nan/loss-not-finite",))
def rule(source: SourceRecord) -> Verdict:
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
                where=[records.spot(source, first.line, "the first NaN"), records.spot(source, loss.last_line, "the loss still looks finite")],
                evidence=[f"{norm.not_finite:,} of {norm.values:,} norms are not finite; all {loss.count:,} losses are shown as finite"],
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
