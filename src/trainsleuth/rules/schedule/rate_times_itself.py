"""A schedule gives learning rates where factors of the learning rate are wanted.

What it detects
    A `LambdaLR` whose factor never comes above the learning rate itself: what the optimizer gets is the rate times the rate. Or whose factor
    never comes above a twentieth, as that of a schedule for rates (Noam's) does. It is told from a warm-up by having stopped rising.
Why it matters
    Rates are small, so their product is next to nothing: 1e-3 becomes 1e-6, and the model stays where it began.
How it is confirmed
    By the learning rates of all windows. The trial `constant-learning-rate` gives the rate that the optimizer was built with.
How to cure it
    Return a factor between 0 and 1, or build the optimizer with lr=1.0 and return the rate.
When it is wrong
    A schedule may keep a rate that low on purpose; then the loss falls all the same, and this is only a note.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.standing import standing
from trainsleuth.rules.wording import number, percent

LEAST_WINDOWS = 30
LOW, HIGH = 0.5, 1.5  # the largest factor against the learning rate
NO_FACTOR = 0.05  # a schedule whose largest factor is below that gives something else than factors
SMALL = 0.05  # a rate above that is near enough to a factor to be one
STILL_RISING = 1.02
FACTORS = ("LambdaLR",)


@cause_rule(
    "schedule/rate-times-itself", explains=("stall/flat-loss", "stall/uniform-predictions"), settled_by=("constant-learning-rate",),
    structural=False, masks=("stall/inputs-and-targets-misaligned", "stall/params-frozen", "schedule/decays-to-zero-early"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    optimizer = chart.main_optimizer()
    if optimizer is None:
        return None
    schedule = next((s for s in chart.schedulers.values() if s.optimizer == optimizer.id and s.about.get("kind") in FACTORS), None)
    if schedule is None:
        return None
    base = [rate for rate in schedule.about.get("base", []) if rate > 0]
    if not base or max(base) > SMALL:
        return None
    if optimizer.windows < LEAST_WINDOWS or len(optimizer.rates.points) < 4:
        return Missing(f"{LEAST_WINDOWS} steps with this schedule")
    rates, meant = optimizer.rates, max(base)
    factor = rates.most / meant
    itself = LOW * meant < factor < HIGH * meant
    if not (itself or 0 < factor < NO_FACTOR) or rates.last > STILL_RISING * rates.between(0.4, 0.8)[0]:
        return None
    now = standing(chart)
    return Seen(
        title=f"the schedule multiplies the learning rate by itself: {number(meant)} becomes {number(rates.most)} at most" if itself
        else f"the schedule never gives more than {percent(factor)} of the learning rate: {number(meant)} becomes {number(rates.most)} at most",
        where=[
            Spot(schedule.at, "this schedule wants a factor") if schedule.at else None,
            *[Spot(at, "asked for here") for at in [place(schedule.about.get("via"))] if at and at != schedule.at],
            Spot(optimizer.at, "the optimizer") if optimizer.at else None,
        ],
        evidence=[
            f"the factor was at most {number(factor)}" + (", which is the learning rate and no factor of it" if itself else ", and no longer rises"),
            f"learning rate {number(rates.first)} → {number(rates.last)}, at most {number(rates.most)}, in {optimizer.windows:,} steps",
        ],
        severity="warning" if isinstance(now, str) else "critical" if now.still else "note",
        step=optimizer.windows,
        statement="the function given to LambdaLR returns the rate where the factor is meant",
        advice=["Divide what it returns by the learning rate of the optimizer, or build the optimizer with lr=1.0."],
    )
