"""The learning rate is zero, or next to nothing, for the last part of the run.

What it detects
    The learning rate fell below a millionth of its peak in the first 70 % of the steps and never rose again. A log must print it with
    enough digits to say so. Or it fell to a hundredth of its peak in the first tenth, never rose again, and the loss stands still at
    the level of guessing.
Why it matters
    All further steps are computed for nothing.
How it is confirmed
    By the learning rate of every window. Whether a small rate is why a loss stands still, the trial `constant-learning-rate` settles.
How to cure it
    Give the scheduler the number of steps it really gets: epochs times batches when it is stepped per batch.
When it is wrong
    Warm restarts rise again, and decays that end at a small but useful rate stay above: silent.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Optimizer
from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.rules import records
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule, record_rule
from trainsleuth.rules.standing import standing
from trainsleuth.rules.wording import number, percent

NOTHING = 1e-6
LITTLE, EARLY = 0.011, 0.1  # of the peak, of the run


@cause_rule("schedule/decays-to-zero-early", explains=("stall/flat-loss",), settled_by=("constant-learning-rate",), structural=False,
            masks=("stall/inputs-and-targets-misaligned",))  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    optimizer = chart.main_optimizer()
    if optimizer is None or not optimizer.rates.points or optimizer.rates.most <= 0:
        return None
    if not (chart.ended or chart.stopped):
        return Missing("the end of the run: the learning rate may rise again")
    points, peak = optimizer.rates.points, optimizer.rates.most
    low_from = _low_from(optimizer, NOTHING)
    zero = low_from is not None and optimizer.windows - low_from >= 30 and low_from <= 0.7 * optimizer.windows
    if not zero:
        low_from = _low_from(optimizer, LITTLE)
        now = standing(chart)
        if low_from is None or low_from > EARLY * optimizer.windows or isinstance(now, str) or not now.stuck:
            return None
    assert low_from is not None
    left = f"at least {percent(1 - low_from / optimizer.windows)} of the steps"
    schedulers = [s for s in chart.schedulers.values() if s.optimizer == optimizer.id]
    return Seen(
        title=f"the learning rate is {number(points[-1].most)} at the latest from step {low_from:,} of {optimizer.windows:,} on"
        + ("" if zero else ", and the loss stands still"),
        where=[*[Spot(s.at, "this schedule ends too early") for s in schedulers if s.at][:1], optimizer.at],
        evidence=[
            f"peak {number(peak)}; {left} change nothing" if zero else f"peak {number(peak)}; {left} have a hundredth of it or less",
            *[f"{s.kind}: {', '.join(f'{k}={v}' for k, v in list(s.about['settings'].items())[:5] if k != 'last_epoch')}" for s in schedulers[:1]],
        ],
        severity="warning",
        step=low_from,
        statement="the schedule is shorter than the run",
        advice=["Count the scheduler's length in the unit in which it is stepped: epochs x batches when stepped per batch."],
        certain=zero,
        look_for="" if schedulers else "rate",
    )


def _low_from(optimizer: Optimizer, share: float) -> int | None:
    """The step from which on the learning rate stays below a share of its peak."""
    found = None
    for point in reversed(optimizer.rates.points):
        if point.most > share * optimizer.rates.most:
            break
        found = point.to - point.n
    return found


@record_rule("schedule/decays-to-zero-early", "cause", explains=("stall/flat-loss",))
def record(source: SourceRecord) -> Verdict:
    for run in records.runs(source):
        rate = run.rate()
        if rate is None or rate.count < 20 or rate.most <= 0:
            continue
        smallest = 0.5 * 10.0 ** -rate.digits if rate.digits is not None else 0.0
        low = 0
        for interval in reversed(rate.intervals):
            if interval.most > NOTHING * rate.most:
                break
            low += interval.n
        if low < 6 or low < 0.3 * rate.count:
            continue
        if smallest > 1e-3 * rate.most:
            return Missing(f"more digits of {rate.name}: printed as {rate.text_of(rate.last)} it may still be {smallest:.0e}")
        begins = next(i for i in rate.intervals if i.to > rate.count - low)
        return Seen(
            title=f"{rate.name} is {number(rate.last)} from {records.at(begins)} on: {percent(low / rate.count)} of the run changes nothing",
            where=[records.spot(source, begins.line, "zero from here on"), records.spot(source, rate.last_line, "and still at the end")],
            evidence=[f"peak {number(rate.most)}; the last {low:,} of {rate.count:,} logged values are below a millionth of it"],
            severity="warning",
            step=begins.step,
            statement="the schedule is shorter than the run",
            advice=["Count the scheduler's length in the unit in which it is stepped: epochs x batches when stepped per batch."],
            certain=False,
            settle="print the number of steps that the scheduler was given, beside the number that the run makes",
        )
    return None
