"""The loss is NaN or infinite, or gradients and weights are.

What it detects
    A loss that was back-propagated is not a finite number; or a gradient or a weight is not, though the loss is.
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
from trainsleuth.rules.kinds import Seen, Spot, Verdict, symptom_rule
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
                + (f"; the last finite one was {number(before.mean)} at backward {before.to:,}" if before else "")
            ],
            severity="note" if recovered else "critical",
            step=before.to + 1 if before else 1,
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
