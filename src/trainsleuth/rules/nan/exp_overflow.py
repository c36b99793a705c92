"""An exponential overflowed.

What it detects
    The first bad number is the infinity that exp (expm1, cosh, sinh, a power with a variable exponent) gives for an operand
    above about 88 in 32 bits, 11 in 16 bits.
Why it matters
    Infinity minus infinity, or infinity times zero, is NaN one line later, and then every weight is.
How it is confirmed
    The program is run again in a sandbox, from the same random numbers, with every operation watched near that step. The finding
    names the operation that made the first bad number from clean operands, and the way from there to the loss. `prove` then runs it
    with that one operation guarded (knob `operation-guarded`): the loss stays finite.
How to cure it
    Clamp the operand (logvar.clamp(-10, 10)), use a function that is safe by itself (softplus, logsumexp, log_softmax), or
    subtract the maximum first. A large operand from the start points to initialisation or to inputs that are not normalised;
    one that grew points to the learning rate.
When it is wrong
    Not known to be: the operand's largest value is shown.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Verdict, cause_rule
from trainsleuth.rules.origins import CONSEQUENCES, SYMPTOMS, judged


@cause_rule("nan/exp-overflow", explains=SYMPTOMS, settled_by=("operation-guarded",), masks=CONSEQUENCES)
def rule(chart: ProcessChart) -> Verdict:
    return judged(
        chart,
        "exp-overflow",
        "an exponential overflowed and made the first bad value",
        [
            "clamp the operand, or use logsumexp, softplus or log_softmax, which do not overflow",
        ],
        note="overflows here",
    )
