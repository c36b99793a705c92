"""A schedule was built, nobody steps it, and the learning rate stays at the small value with which the schedule begins.

What it detects
    The program has ended by itself; a scheduler of the optimizer was never stepped; and from the first step to the last the learning
    rate was the one with which that schedule begins, less than half of what the optimizer was given.
Why it matters
    A warm-up begins at a fraction of the learning rate. Where it is never stepped, the whole run trains at that fraction.
How it is confirmed
    By the learning rate of every window. The trial `constant-learning-rate` gives it its full size.
How to cure it
    Call `scheduler.step()` where its length is counted. Under Lightning's manual optimization nobody else does:
    `self.lr_schedulers().step()`; and a scheduler must be returned from `configure_optimizers` to be stepped at all.
When it is wrong
    A schedule that begins at the full rate and is never stepped only fails to decay: silent. A run that was interrupted, or so short that
    the first step of a schedule by epochs was still to come: silent, or the end of the run is missing.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.standing import standing
from trainsleuth.rules.wording import number, percent

SMALL = 0.5  # of the learning rate that the optimizer was given


@cause_rule(
    "schedule/never-stepped", explains=("stall/flat-loss", "stall/uniform-predictions"), settled_by=("constant-learning-rate",),
    structural=False, masks=("stall/inputs-and-targets-misaligned", "stall/learning-rate-too-small"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    optimizer = chart.main_optimizer()
    if optimizer is None or optimizer.windows < 20 or not optimizer.rates.points:
        return None
    idle = [s for s in chart.schedulers.values() if s.optimizer == optimizer.id and s.at is not None]
    if not idle or any(s.steps or s.loaded for s in idle):
        return None
    rates = optimizer.rates
    meant = max((rate for s in idle for rate in s.about.get("base", [])), default=0.0)
    if not 0 < rates.most < SMALL * meant or rates.least != rates.most:
        return None
    if chart.interrupted or chart.crash is not None:
        return None
    if not (chart.ended or chart.stopped):
        return Missing("the end of the run")
    now = standing(chart)
    return Seen(
        title=f"a schedule that nobody steps: the learning rate stays at {percent(rates.most / meant)} of {number(meant)}",
        where=[
            Spot(idle[0].at, f"this {idle[0].kind} is never stepped") if idle[0].at else None,
            Spot(optimizer.step_at, "the optimizer steps here, without it") if optimizer.step_at else None,
            *[Spot(at, "asked for here") for s in idle[:1] if (at := place(s.about.get("via")))],
        ],
        evidence=[
            f"learning rate {number(rates.most)} in all {optimizer.windows:,} steps: what the schedule begins with",
            f"the optimizer was given {number(meant)}",
        ],
        severity="critical" if not isinstance(now, str) and now.still else "warning",
        step=optimizer.windows,
        statement="the schedule is never stepped, so its warm-up never begins",
        advice=["Call scheduler.step() after optimizer.step(), in the unit in which the schedule's length is counted."],
    )
