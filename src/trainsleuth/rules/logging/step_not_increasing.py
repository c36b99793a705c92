"""A metric is logged with steps that go back.

What it detects
    Three or more points of one name whose step is lower than one that was already logged to the same writer.
Why it matters
    The curve folds back over itself: TensorBoard draws a zigzag, and its reader may throw the earlier points away as orphans.
How it is confirmed
    By the steps themselves, in the order in which they were logged.
How to cure it
    Number the points by one counter that is never reset: `epoch * len(loader) + batch`, or a `global_step` that only grows. After a
    resume begin where the checkpoint ends (`SummaryWriter(purge_step=…)`). `trainsleuth.stepping.StepLogger` does both.
When it is wrong
    Points that are logged late, out of order, by threads. Steps of different names are never compared: an epoch axis beside a step axis
    is healthy.
"""

from trainsleuth.case.chart import ProcessChart, place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import count

FEWEST = 3
WITHOUT_A_STEP = 16


@cause_rule("logging/step-not-increasing")
def rule(chart: ProcessChart) -> Verdict:
    rows = sorted((fact for fact in chart.log_back.values() if fact["count"] >= FEWEST), key=lambda fact: -fact["count"])
    if not rows:
        return _without_steps(chart)
    worst = rows[0]
    at, most_at = place(worst["at"]), place(worst["most_at"])
    return Seen(
        title=f"the steps of {worst['name']} go back: {worst['step']:,} after {worst['most']:,}",
        where=[
            Spot(at, "logs with a step that starts again") if at else None,
            Spot(most_at, "had logged the higher step") if most_at and most_at != at else None,
        ],
        evidence=[f"{fact['logger']}: {fact['name']} has at least {count(fact['count'], 'point')} below its highest step" for fact in rows[:6]],
        severity="warning",
        statement="the counter is reset, with each epoch perhaps, or two counters are used for one name",
        advice=["Count once for the whole run: epoch * len(loader) + batch. trainsleuth.stepping.StepLogger keeps such a counter."],
        step=worst["step"],
    )  # fmt: skip


def _without_steps(chart: ProcessChart) -> Verdict:
    rows = [fact for fact in chart.log_stepless.values() if fact["logger"] == "TensorBoard" and fact["count"] >= WITHOUT_A_STEP]
    if not rows:
        return None
    at = place(rows[0]["at"])
    return Seen(
        title=f"{rows[0]['name']} is logged without a step: TensorBoard draws all its points at step 0",
        where=[Spot(at, "gives no global_step") if at else None],
        evidence=[f"{fact['name']}: at least {count(fact['count'], 'point')} without a step" for fact in rows[:6]],
        severity="note",
        statement="global_step is missing",
        advice=["writer.add_scalar(name, value, global_step)"],
    )
