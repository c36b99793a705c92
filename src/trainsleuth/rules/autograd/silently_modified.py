"""A tensor that backward needed was changed behind PyTorch's back: the gradients are wrong, and nothing was raised.

What it detects
    The numbers of a tensor that autograd had saved differ between forward and backward, and its version does not: a write through
    `.data`, through a numpy array on the same memory, or by a fused optimizer's step.
Why it matters
    The program trains on gradients of something else. There is no error and often no visible break, only a worse result.
How it is confirmed
    While the program runs, weights, inputs and results are compared between forward and backward in the first windows. If one has
    changed, the program is run again in a sandbox, where every saved tensor is compared with what it was, and every write is noted.
    The trial `saved-tensors-copied` keeps the change away from backward, and compares the losses number by number.
How to cure it
    Change weights after backward and step, under torch.no_grad() without `.data`, so that PyTorch can see it; copy an array before it is
    used again; compute the loss anew after a step.
When it is wrong
    A change that the backward in question does not need is not counted: only tensors that autograd really uses are compared.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.mutations import by_a_step, mutation_of, versions, where_changed


@cause_rule(
    "autograd/silently-modified", settled_by=("saved-tensors-copied",), explains=("stall/flat-loss", "stall/uniform-predictions"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    if not chart.silent_changes:
        return None
    found = mutation_of(chart)
    if found is None or not found[1].get("silent"):
        last = chart.examined[-1] if chart.examined else None
        if last is not None and last.get("result") in ("not reproduced", "mutation"):
            return None
        return Missing(f"an examination that finds the line ({(last or {}).get('why') or 'trainsleuth prove runs one'})")
    fact, mutation = found
    seen = chart.silent_changes[0]
    where = where_changed(mutation)
    if not mutation.get("writes"):
        taken_at = place(seen.get("taken_at"))
        where = [*([Spot(taken_at, "taken out of the graph here, and then written to")] if taken_at else []), *where]
        where += [Spot(at, "the backward that was given wrong numbers") for at in [place(seen.get("at"))] if at]
    step = " by an optimizer's step" if by_a_step(mutation) else ""
    return Seen(
        title=f"a tensor that backward needs is changed{step}, unseen by PyTorch: the gradients are wrong",
        where=where,
        evidence=[*versions(mutation)[:5], f"found by running the program again in a sandbox ({fact.get('took', '?')} s)"],
        advice=["change it after backward, under torch.no_grad() and without .data; copy arrays before they are used again"],
        step=int(fact.get("windows") or 0) + 1,
    )
