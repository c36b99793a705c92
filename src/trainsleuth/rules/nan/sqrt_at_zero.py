"""The derivative of a square root (or a norm, a standard deviation, a distance) was taken at zero, or the root of a negative number.

What it detects
    The first bad number comes from the backward pass of a root whose operand is zero, where the slope is infinite; or from the
    root of a negative number.
Why it matters
    The loss looks fine and the gradient is NaN: after the next step everything is.
How it is confirmed
    The program is run again in a sandbox, from the same random numbers, with every operation watched near that step. The finding
    names the operation that made the first bad number from clean operands, and the way from there to the loss. `prove` then runs it
    with that one operation guarded (knob `operation-guarded`): the loss stays finite.
How to cure it
    Put a small number inside the root: sqrt(x + 1e-12); for norms use x.square().sum(-1).add(1e-12).sqrt(), or compare squared
    distances. Clamping after the root is too late: the gradient passes through the root first.
When it is wrong
    torch.norm has a subgradient of zero at zero by itself and is not blamed unless it gave NaN.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Verdict, cause_rule
from trainsleuth.rules.origins import CONSEQUENCES, SYMPTOMS, judged


@cause_rule("nan/sqrt-at-zero", explains=SYMPTOMS, settled_by=("operation-guarded",), masks=CONSEQUENCES)
def rule(chart: ProcessChart) -> Verdict:
    return judged(
        chart,
        "sqrt-at-zero",
        "the gradient of a square root at zero (or the root of a negative number) made the first bad value",
        [
            "put a small number inside the root: sqrt(x + 1e-12); outside it is too late",
        ],
        note="the first bad number is made here",
    )
