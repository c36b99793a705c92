"""A number was too large for 16 bits.

What it detects
    The first bad number is an infinity in float16 or bfloat16, and the same operation in 32 bits gives a finite result.
Why it matters
    float16 ends at 65,504. Sums over many elements, squared activations, attention scores and unscaled logits pass that easily
    while 32 bits would be fine.
How it is confirmed
    The program is run again in a sandbox, from the same random numbers, with every operation watched near that step. The finding
    names the operation that made the first bad number from clean operands, and the way from there to the loss. `prove` then runs it
    with that one operation guarded (knob `operation-in-32-bits`): the loss stays finite.
How to cure it
    Compute this operation in 32 bits: with torch.autocast(device_type, enabled=False) around it and .float() on its operands;
    or scale the operand down before (divide queries by the square root of the width before the product); or use bfloat16, which
    has the range of 32 bits.
When it is wrong
    An infinity that a GradScaler meets in the first steps and survives is its normal work and is not reported.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Verdict, cause_rule
from trainsleuth.rules.origins import CONSEQUENCES, SYMPTOMS, judged


@cause_rule("nan/half-overflow", explains=SYMPTOMS, settled_by=("operation-in-32-bits",), masks=CONSEQUENCES)
def rule(chart: ProcessChart) -> Verdict:
    return judged(
        chart,
        "half-overflow",
        "a number was too large for 16 bits, and that made the first bad value",
        [
            "compute this operation in 32 bits (autocast off around it, operands .float()), scale it down before, or use bfloat16",
        ],
        note="too large for 16 bits",
    )
