"""The operation that made the first NaN or Inf, where no more special rule knows its kind.

What it detects
    An operation gave NaN where no operand had one, or infinity where all operands were finite, and that reached the loss or the
    gradients.
Why it matters
    Everything after it is a consequence. The line that prints NaN first is rarely the line that made it.
How it is confirmed
    The program is run again in a sandbox, from the same random numbers, with every operation watched near that step. Where
    it is an operation with a known range (acos, asin, atanh, tan), a trial keeps its operands inside (knob `operation-guarded`).
How to cure it
    Look at the operands that are shown: which of them is out of the range that the operation bears?
When it is wrong
    If the second run takes another course (random numbers that are drawn from the system), the origin may be another one.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Verdict, cause_rule
from trainsleuth.rules.origins import CONSEQUENCES, SYMPTOMS, judged


@cause_rule("nan/first-operation", explains=SYMPTOMS, masks=CONSEQUENCES, settled_by=("operation-guarded",))
def rule(chart: ProcessChart) -> Verdict:
    return judged(
        chart,
        "first-operation",
        "this operation made the first number that is not finite",
        ["look at the operands above: which of them is out of the range that this operation bears?"],
        note="the first bad number is made here",
    )
