"""A logarithm was taken of zero, or of a negative number.

What it detects
    The first bad number comes from a logarithm (log, log1p, logit, xlogy, or its backward pass) whose operand holds zeros or
    negative numbers.
Why it matters
    One such element makes the loss infinite; its gradient is NaN, and after the next step all weights are.
How it is confirmed
    The program is run again in a sandbox, from the same random numbers, with every operation watched near that step. The finding
    names the operation that made the first bad number from clean operands, and the way from there to the loss. `prove` then runs it
    with that one operation guarded (knob `operation-guarded`): the loss stays finite.
How to cure it
    Compute in log space (log_softmax instead of log of softmax, binary_cross_entropy_with_logits instead of log of sigmoid), or
    keep the operand away from zero: log(x.clamp_min(1e-8)). Adding a tiny number that vanishes beside the operand's own
    precision does not help.
When it is wrong
    Not known to be: the operand's smallest value is shown.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Verdict, cause_rule
from trainsleuth.rules.origins import CONSEQUENCES, SYMPTOMS, judged


@cause_rule("nan/log-of-zero", explains=SYMPTOMS, settled_by=("operation-guarded",), masks=CONSEQUENCES)
def rule(chart: ProcessChart) -> Verdict:
    return judged(
        chart,
        "log-of-zero",
        "a logarithm of zero or of a negative number made the first bad value",
        [
            "compute in log space (log_softmax, …_with_logits), or keep the operand above zero: log(x.clamp_min(1e-8))",
        ],
        note="the first bad number is made here",
    )
