"""The steps are so small that the run could not have led anywhere.

What it detects
    The loss stands still at the level of guessing for at least 100 steps; every parameter that an optimizer holds gets a gradient and moves,
    but by so little that all steps together, if they all went the same way, would not have moved any by a fiftieth of its own size.
Why it matters
    A learning rate that was divided once too often (by the batch, by 1000, by the number of ranks) looks like a problem that is too hard.
How it is confirmed
    By the sizes of updates and weights in each look. The trials `learning-rate-hundredfold` and `-thousandfold` show whether larger steps learn.
How to cure it
    Print the learning rate where the optimizer is built; compare it with what is usual (1e-3 for Adam, 1e-1 to 1e-2 for SGD).
When it is wrong
    A run that was only begun, or that warms up, has made small steps on purpose. A problem that no step size learns is another matter, and
    then the trials refute this.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.standing import standing
from trainsleuth.rules.wording import number, percent

ENOUGH = 100
WAY = 0.02  # of its own size that the parameter which moves most could have moved by now


@cause_rule(
    "stall/learning-rate-too-small", settled_by=("learning-rate-hundredfold", "learning-rate-thousandfold"),
    explains=("stall/flat-loss", "stall/uniform-predictions"), structural=False, masks=("stall/inputs-and-targets-misaligned",), last_resort=True,
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    optimizer = chart.main_optimizer()
    if optimizer is None or optimizer.windows < ENOUGH or not optimizer.rates.points or optimizer.rates.most == 0:
        return None
    now = standing(chart)
    if isinstance(now, str):
        return Missing(now)
    held = [p for p in chart.called_parameters() or list(chart.parameters.values()) if p.owners and p.trainable and p.looks >= 3]
    if not now.stuck or not held or any(not p.with_gradient for p in held):
        return None
    ratios = [p.update / p.weight for p in held if p.update and p.weight]
    if not ratios or max(ratios) * optimizer.windows >= WAY or optimizer.rates.last > 1.02 * optimizer.rates.between(0.4, 0.8)[0]:
        return None
    return Seen(
        title=f"the steps are tiny: in {optimizer.windows:,} of them no weight could move by more than {percent(max(ratios) * optimizer.windows)}",
        where=[Spot(optimizer.at, f"this optimizer steps with a learning rate of {number(optimizer.rates.most)}") if optimizer.at else None],
        evidence=[
            f"learning rate {number(optimizer.rates.first)} → {number(optimizer.rates.last)}; the largest update was {number(max(ratios))} of its "
            "parameter's size",
            f"all {len(held)} parameters get gradients; the loss stands at {number(now.level)}, guessing gives {number(now.chance)}",
        ],
        severity="warning",
        step=optimizer.windows,
        statement="the learning rate is too small",
        advice=["Print the learning rate where the optimizer is built, and follow what it was divided by."],
        certain=False,
    )
