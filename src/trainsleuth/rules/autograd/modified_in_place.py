"""A tensor that backward still needed was changed in place.

What it detects
    Backward stopped with "modified by an inplace operation". PyTorch names the operation that had saved the tensor; this finding
    names who changed it.
Why it matters
    The gradient would have been wrong. The line that PyTorch points at is the victim's, and the culprit may be far away.
How it is confirmed
    The program is run again in a sandbox: every write into a tensor is noted with its line, and every tensor that autograd saves
    with its version. The finding tells the story version by version.
How to cure it
    Write a new tensor instead: x = x + y for x += y, relu(x) for relu_(x), torch.stack of a list for h[:, t] = …; or clone the tensor
    before it is changed.
When it is wrong
    Not known to be: the versions are counted by PyTorch itself. A step of an optimizer between forward and backward is
    autograd/step-between-backwards.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.autograd_errors import error_of
from trainsleuth.rules.kinds import Seen, Verdict, cause_rule
from trainsleuth.rules.mutations import SYMPTOMS, by_a_step, missing, mutation_of, versions, where_changed


@cause_rule("autograd/modified-in-place", explains=SYMPTOMS, settled_by=("saved-tensors-copied",), masks=("crash/known",))
def rule(chart: ProcessChart) -> Verdict:
    if error_of(chart.crash) != "modified-in-place":
        return None
    found = mutation_of(chart)
    if found is None or not found[1].get("writes"):
        return missing(chart)
    fact, mutation = found
    if by_a_step(mutation):
        return None
    return Seen(
        title="a tensor that backward needs is changed in place",
        where=where_changed(mutation),
        evidence=[*versions(mutation), f"found by running the program again in a sandbox ({fact.get('took', '?')} s)"],
        advice=[
            "write a new tensor (x = x + y instead of x += y; torch.stack of a list instead of h[:, t] = …), or clone it first"
        ],
        step=int(fact.get("windows") or 0) + 1,
    )
