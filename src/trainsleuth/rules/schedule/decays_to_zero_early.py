"""The learning rate is zero for the last part of the run.

What it detects
    The learning rate fell below a millionth of its peak in the first 70 % of the steps and never rose again.
Why it matters
    All further steps are computed for nothing.
How it is confirmed
    By the learning rate of every window.
How to cure it
    Give the scheduler the number of steps it really gets: epochs times batches when it is stepped per batch.
When it is wrong
    Warm restarts rise again, and decays that end at a small but useful rate stay above: silent.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import number, percent

NOTHING = 1e-6


@cause_rule("schedule/decays-to-zero-early", explains=("stall/flat-loss",), settled_by=("constant-learning-rate",), structural=False,
            masks=("stall/inputs-and-targets-misaligned",))  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    optimizer = chart.main_optimizer()
    if optimizer is None or not optimizer.rates.points or optimizer.rates.most <= 0:
        return None
    if not (chart.ended or chart.stopped):
        return Missing("the end of the run: the learning rate may rise again")
    points, peak = optimizer.rates.points, optimizer.rates.most
    low_from = None
    for point in reversed(points):
        if point.most > NOTHING * peak:
            break
        low_from = point.to - point.n
    if low_from is None or optimizer.windows - low_from < 30 or low_from > 0.7 * optimizer.windows:
        return None
    schedulers = [s for s in chart.schedulers.values() if s.optimizer == optimizer.id]
    return Seen(
        title=f"the learning rate is {number(points[-1].most)} from step {low_from:,} of {optimizer.windows:,} on",
        where=[*[Spot(s.at, "this schedule ends too early") for s in schedulers if s.at][:1], optimizer.at],
        evidence=[
            f"peak {number(peak)}; {percent(1 - low_from / optimizer.windows)} of the steps change nothing",
            *[f"{s.kind}: {', '.join(f'{k}={v}' for k, v in list(s.about['settings'].items())[:5])}" for s in schedulers[:1]],
        ],
        severity="warning",
        step=low_from,
        statement="the schedule is shorter than the run",
        advice=["Count the scheduler's length in the unit in which it is stepped: epochs x batches when stepped per batch."],
        look_for="" if schedulers else "rate",
    )
