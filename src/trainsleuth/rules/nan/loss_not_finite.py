"""The loss is NaN or infinite, or gradients and weights are.

What it detects
    A loss that was back-propagated is not a finite number; or a gradient or a weight is not, though the loss is. From a log alone: the
    first line on which a loss or a gradient norm is NaN or infinite, and what moved before it.
Why it matters
    One such step spoils every weight it reaches.
How it is confirmed
    It is a symptom; the causes explain it.
How to cure it
    See the causes; otherwise look at the last finite values of the loss and at the learning rate.
When it is wrong
    Programs that test for it and skip the step are not harmed: if the last quarter of the values is finite the finding is a note.
"""

import math

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.record_chart import RunRecord, SourceRecord
from trainsleuth.case.series import Broken, Series
from trainsleuth.rules import records
from trainsleuth.rules.kinds import Seen, Spot, Verdict, record_rule, symptom_rule
from trainsleuth.rules.origins import has_recovered
from trainsleuth.rules.wording import number


@symptom_rule("nan/loss-not-finite", structural=True)
def rule(chart: ProcessChart) -> Verdict:
    for at, curve in chart.losses.items():
        if not curve.not_finite:
            continue
        recovered = has_recovered(curve)
        ends_finite = math.isfinite(curve.last)
        before = curve.points[-1] if curve.points else None
        return Seen(
            title="the loss was not finite for a while"
            if recovered
            else "the loss is not finite again and again"
            if ends_finite
            else f"the loss is {'NaN' if math.isnan(curve.last) else 'infinite'}",
            where=[Spot(at, "back-propagated here")],
            evidence=[
                f"{curve.not_finite:,} of {curve.count:,} values are not finite"
                + (f"; until backward {before.to:,} some were finite, {number(before.mean)} on average at last" if before else "")
            ],
            severity="note" if recovered else "critical",
            step=before.to + 1 if before else 1,
            settle=_why_unknown(chart),
        )
    if chart.bad_parameters:
        main = chart.main_loss()
        return Seen(
            title="gradients or weights are not finite, though the loss is",
            where=[Spot(main[0], "back-propagated here")] if main else [],
            evidence=[f"not finite when looked at: {', '.join(dict.fromkeys(chart.bad_parameters))}"],
            step=chart.bad_between[1] if chart.bad_between else None,
        )
    return None


def _why_unknown(chart: ProcessChart) -> str:
    """Why an examination has not found the operation, if one was made or prevented."""
    last = chart.examined[-1] if chart.examined else {}
    return f"the operation that made it was looked for and not found: {last['why']}" if last.get("why") else ""


@record_rule("nan/loss-not-finite", structural=True)
def record(source: SourceRecord) -> Verdict:
    best: Seen | None = None
    for run in records.runs(source):
        broken = [series for series in run.of_role("loss", "gradient", "value", "error") if series.broken]
        for series in sorted(broken, key=lambda s: (not s.broken_now, s.role != "loss", s.split == "val", s.broken[0].line)):
            if series.role in ("gradient", "error") and not series.broken_now:
                continue  # a skipped step of a gradient scaler looks so, and is well
            seen = _broken(source, run, series)
            best = seen if best is None or (best.severity == "note" and seen.severity != "note") else best
    return best


def _broken(source: SourceRecord, run: RunRecord, series: Series) -> Seen:
    first = series.broken[-1] if series.broken_now else series.broken[0]
    word = "NaN" if math.isnan(first.value) else "infinite"
    place = records.when(first.step, first.epoch) or f"line {first.line:,}"
    before = next((i for i in reversed(series.intervals) if i.to <= first.after), None)
    stays = series.broken_now
    return Seen(
        title=f"{series.name} is {word} from {place} on" if stays else f"{series.name} was {word} at {place} and recovered",
        where=[
            records.spot(source, before.line, "the last finite one") if before else None,
            records.spot(source, first.line, "the first that is not finite"),
        ],
        evidence=[
            f"{series.not_finite:,} of {series.values:,} values are not finite"
            + (f"; the last finite one was {number(before.mean)} at {records.at(before)}" if before else "; none was ever finite"),
            *_what_moved(run, series, first),
        ],
        severity="critical" if stays and series.role == "loss" else "warning" if stays else "note",
        step=first.step,
        statement="a number broke, and everything computed from it after that",
        advice=[
            "Look at the first bad step, not the last: the loss's own inputs, the gradient norm and the learning rate just before it.",
        ],
        certain=False,
        settle="`trainsleuth run` on the same command: it names the operation that made the first bad number; "
        "once more in 32 bit tells overflow from division",
    )


def _what_moved(run: RunRecord, series: Series, first: Broken) -> list[str]:
    """How gradient norm, learning rate and losses stood just before, against their usual."""
    lines = []
    for other in [series, *run.of_role("gradient", "rate", "scale"), *[s for s in run.of_role("loss") if s is not series][:2]]:
        earlier = [i for i in other.intervals if i.line < first.line]
        if len(earlier) < 6:
            continue
        usual = sorted(i.mean for i in earlier[:-3])[len(earlier[:-3]) // 2]
        last = max((i.most for i in earlier[-3:]), key=abs)
        if usual and abs(last) > 3 * abs(usual):
            lines.append(f"{other.name} rose before it: usually {number(usual)}, {number(last)} just before")
        elif other.role == "rate":
            lines.append(f"the learning rate was {number(earlier[-1].mean)} then (peak so far {number(max(i.most for i in earlier))})")
    if not lines and len(series.intervals) >= 6:
        lines.append("nothing that the log shows moved before it: one step was enough")
    return lines[:4]
