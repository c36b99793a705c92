"""A value was masked out, but its gradient was not: zero times infinity is NaN.

What it detects
    The loss is finite and the gradient is NaN; the first bad number arises in the backward pass of an operation through which a
    gradient of exactly zero flows, because its result was discarded by torch.where, a mask, or a clamp.
Why it matters
    The mask hides the bad value in the forward pass only. Backward multiplies the zero of the mask with the infinite slope
    behind it.
How it is confirmed
    The program is run again in a sandbox, from the same random numbers, with every operation watched near that step. The finding
    names the operation that made the first bad number from clean operands, and the way from there to the loss. `prove` then runs it
    with that one operation guarded (knob `operation-guarded`): the loss stays finite.
How to cure it
    Make the operand safe before the operation: safe = torch.where(ok, x, torch.ones_like(x)); y = torch.where(ok, f(safe),
    other). Guarding the result is too late.
When it is wrong
    Not known to be: that the gradient was zero where the NaN arose is measured.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Verdict, cause_rule
from trainsleuth.rules.origins import CONSEQUENCES, SYMPTOMS, judged


@cause_rule("nan/where-trap", explains=SYMPTOMS, settled_by=("operation-guarded",), masks=CONSEQUENCES)
def rule(chart: ProcessChart) -> Verdict:
    return judged(
        chart,
        "where-trap",
        "a masked-out value came back through its gradient (0 × infinity)",
        [
            "make the operand safe before the operation: f(torch.where(ok, x, 1)), and only then mask the result",
        ],
        note="masked afterwards, but its gradient is NaN",
    )
