"""Something was divided by zero, or averaged over nothing.

What it detects
    The first bad number comes from a division whose divisor holds zeros, a reciprocal of zero, a mean over no elements, or a
    loss whose targets are all ignored.
Why it matters
    0/0 is NaN and 1/0 is infinite; a single element spoils the loss and then every weight.
How it is confirmed
    The program is run again in a sandbox, from the same random numbers, with every operation watched near that step. The finding
    names the operation that made the first bad number from clean operands, and the way from there to the loss. `prove` then runs it
    with that one operation guarded (knob `operation-guarded`): the loss stays finite.
How to cure it
    Guard the divisor (x / n.clamp_min(1)), or leave batches out for which there is nothing to divide by: masks that select
    nothing, a data set's constant column with a standard deviation of zero, a batch without a labelled pixel.
When it is wrong
    A division that is masked out afterwards is nan/where-trap.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Verdict, cause_rule
from trainsleuth.rules.origins import CONSEQUENCES, SYMPTOMS, judged


@cause_rule("nan/zero-division", explains=SYMPTOMS, settled_by=("operation-guarded",), masks=CONSEQUENCES)
def rule(chart: ProcessChart) -> Verdict:
    return judged(
        chart,
        "zero-division",
        "a division by zero, or a mean over nothing, made the first bad value",
        [
            "guard the divisor (clamp_min) or skip what has nothing to be divided by",
        ],
        note="the first bad number is made here",
    )
