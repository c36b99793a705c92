"""A leaf tensor that requires gradients was changed in place.

What it detects
    The program stopped because a weight (or another tensor with requires_grad that no operation made) was changed by an in-place
    operation while gradients were recorded.
Why it matters
    Autograd cannot differentiate through a change of the very thing that it differentiates by.
How it is confirmed
    The error itself is the proof; the line is the user's own line of the traceback.
How to cure it
    Update weights under torch.no_grad() (weight.add_(…) inside of it), or let an optimizer do it; build a new tensor if the change is part
    of the computation.
When it is wrong
    Never.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.autograd_errors import error_of
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.mutations import SYMPTOMS, first_user_place


@cause_rule("autograd/leaf-modified", explains=SYMPTOMS, masks=("crash/known",))
def rule(chart: ProcessChart) -> Verdict:
    if error_of(chart.crash) != "leaf-modified":
        return None
    lines = first_user_place(chart)
    return Seen(
        title="a weight is changed in place while gradients are recorded",
        where=[Spot(at, "changed here" if index == 0 else "called from here") for index, at in enumerate(lines[:2])],
        evidence=[f"{(chart.crash or {}).get('message', '').strip().splitlines()[0]}"],
        advice=["do it under torch.no_grad(), or build a new tensor if the change is part of the computation"],
        step=chart.windows + 1,
    )
