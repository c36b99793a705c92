"""A variance or standard deviation was taken over a single sample.

What it detects
    The first bad number comes from std or var with fewer samples than degrees of freedom: with the default correction one
    sample gives 0/0.
Why it matters
    It happens on the last, smaller batch, or for a class with a single member, and spoils everything after it.
How it is confirmed
    The program is run again in a sandbox, from the same random numbers, with every operation watched near that step. The finding
    names the operation that made the first bad number from clean operands, and the way from there to the loss. `prove` then runs it
    with that one operation guarded (knob `operation-guarded`): the loss stays finite.
How to cure it
    Pass correction=0 (unbiased=False), drop the last batch (drop_last=True), or skip groups of one.
When it is wrong
    Not known to be: the shape is shown.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Verdict, cause_rule
from trainsleuth.rules.origins import CONSEQUENCES, SYMPTOMS, judged


@cause_rule("nan/variance-of-one-sample", explains=SYMPTOMS, settled_by=("operation-guarded",), masks=CONSEQUENCES)
def rule(chart: ProcessChart) -> Verdict:
    return judged(
        chart,
        "variance-of-one-sample",
        "the standard deviation or variance of a single sample made the first bad value",
        [
            "pass correction=0 (unbiased=False), drop the last small batch (drop_last=True), or skip groups of one",
        ],
        note="of a single sample",
    )
