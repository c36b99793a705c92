"""The CTC loss is infinite: a target does not fit into its input.

What it detects
    The first bad number comes from ctc_loss itself. A target of length L, with r neighbours that are equal, needs L + r input steps;
    with fewer no alignment exists, and the loss is infinite.
Why it matters
    One such sample makes the batch's loss infinite and its gradient NaN.
How it is confirmed
    The program is run again in a sandbox, from the same random numbers, with every operation watched near that step. The finding
    names the operation that made the first bad number from clean operands, and the way from there to the loss. `prove` then runs it
    with that one operation guarded (knob `operation-guarded`): the loss stays finite.
How to cure it
    Pass zero_infinity=True so that such samples count as zero, and then find them: give them more input steps (less striding in
    the encoder), or leave them out of the data.
When it is wrong
    Not known to be.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Verdict, cause_rule
from trainsleuth.rules.origins import CONSEQUENCES, SYMPTOMS, judged


@cause_rule("nan/ctc-infinite", explains=SYMPTOMS, settled_by=("operation-guarded",), masks=CONSEQUENCES)
def rule(chart: ProcessChart) -> Verdict:
    return judged(
        chart,
        "ctc-infinite",
        "a target does not fit into its input, so the CTC loss is infinite",
        [
            "pass zero_infinity=True to the CTC loss, and look for samples whose target is longer than their input "
            "(repeated characters need one step more each)"
        ],
        note="no alignment exists for a sample here",
    )
