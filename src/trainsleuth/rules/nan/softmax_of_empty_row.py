"""A softmax was taken over nothing: every entry of a row was masked with -inf.

What it detects
    The first bad number comes from a softmax (or an attention kernel, or logsumexp) that was given a row of nothing but -inf.
Why it matters
    There is nothing to share the probability among, so the whole row is NaN; attention then spreads it to all that follows.
How it is confirmed
    The program is run again in a sandbox, from the same random numbers, with every operation watched near that step. The finding
    names the operation that made the first bad number from clean operands, and the way from there to the loss. `prove` then runs it
    with that one operation guarded (knob `operation-guarded`): the loss stays finite.
How to cure it
    Let every row see at least one entry (padding queries too), fill with a large finite number instead of -inf
    (torch.finfo(x.dtype).min), or set the result of such rows to zero with torch.where before the softmax's input, not after
    it.
When it is wrong
    A causal mask leaves each row its own entry and is not blamed.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Verdict, cause_rule
from trainsleuth.rules.origins import CONSEQUENCES, SYMPTOMS, judged


@cause_rule("nan/softmax-of-empty-row", explains=SYMPTOMS, settled_by=("operation-guarded",), masks=CONSEQUENCES)
def rule(chart: ProcessChart) -> Verdict:
    return judged(
        chart,
        "softmax-of-empty-row",
        "a softmax over a row of nothing but -inf made the first bad value",
        [
            "let every row keep at least one entry, or mask with torch.finfo(x.dtype).min instead of -inf",
        ],
        note="a whole row is masked here",
    )
