"""The loss stands still at the level of guessing.

What it detects
    After at least forty values the last quarter of the loss is no better than the second, and its level is that of the best
    guess that ignores the input: the entropy of the labels for classes, the variance of the targets for regression.
Why it matters
    The program runs, and does not learn.
How it is confirmed
    It is a symptom. The causes that explain it are tested one by one.
How to cure it
    See the causes.
When it is wrong
    Some models stay at chance for a long time and then learn. The finding says how many steps it has seen.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Missing, Seen, Verdict, symptom_rule
from trainsleuth.rules.standing import standing
from trainsleuth.rules.wording import number


@symptom_rule("stall/flat-loss")
def rule(chart: ProcessChart) -> Verdict:
    now = standing(chart)
    if isinstance(now, str):
        return Missing(now)
    if not now.stuck:
        return None
    return Seen(
        title=f"the loss stands still at {number(now.level)}, which is the level of guessing",
        where=[now.at],
        evidence=[
            f"{now.curve.count:,} values: first {number(now.curve.first)}, last quarter {number(now.level)}; "
            f"a guess that ignores the input gives {number(now.chance)}"
        ],
        severity="critical",
        advice=["`trainsleuth prove` tests the suspected causes; none is certain from watching alone."],
    )
