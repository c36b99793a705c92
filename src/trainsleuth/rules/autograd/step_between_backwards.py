"""An optimizer stepped between the forward that used its weights and the backward that needs them.

What it detects
    A backward needs the value that a weight had in the forward pass, and an optimizer's step has changed it since: two backwards over
    one graph with a step between them (a GAN whose generator loss was computed before the discriminator's step; retain_graph=True to
    silence the first error).
Why it matters
    The second gradient belongs to weights that are no longer there. PyTorch stops where it can see that; a fused optimizer changes the
    weights without PyTorch's notice, and then the gradient is silently wrong.
How it is confirmed
    The program is run again in a sandbox: every write into a tensor is noted with its line, and every tensor that autograd saves with
    its version and its numbers.
How to cure it
    Do both backwards first and then both steps, or compute the second loss anew after the step.
When it is wrong
    Not known to be.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.autograd_errors import error_of
from trainsleuth.rules.kinds import Seen, Verdict, cause_rule
from trainsleuth.rules.mutations import SYMPTOMS, by_a_step, missing, mutation_of, versions, where_changed


@cause_rule("autograd/step-between-backwards", explains=SYMPTOMS, settled_by=("saved-tensors-copied",), masks=("crash/known",))
def rule(chart: ProcessChart) -> Verdict:
    found = mutation_of(chart)
    if found is None:
        return missing(chart) if error_of(chart.crash) == "modified-in-place" else None
    fact, mutation = found
    if not by_a_step(mutation) or mutation.get("silent"):
        return None
    return Seen(
        title="an optimizer steps between a forward and the backward that needs its weights",
        where=where_changed(mutation),
        evidence=[*versions(mutation)[:4], f"found by running the program again in a sandbox ({fact.get('took', '?')} s)"],
        advice=["compute the second loss anew after the step; to step after both backwards would mix the gradients of both losses"],
        step=int(fact.get("windows") or 0) + 1,
    )
