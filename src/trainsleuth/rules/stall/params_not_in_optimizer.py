"""Parameters receive gradients that no optimizer will ever apply.

What it detects
    In three windows a parameter of a called model has a gradient, no optimizer holds it, and it has not moved since the start.
    Sure signs of a slip: it, or its layer, was made after the optimizer, the optimizer holds parameters that no called model has any more (a
    model that was copied, rebuilt, or reloaded with `assign=True`), or it was never loaded from anywhere and so stays random.
Why it matters
    The layer stays at its initial value. The rest of the model learns around it, so the loss may even fall.
How it is confirmed
    A trial adds the parameters to the first optimizer (knob `optimizer-owns-all`): they move, and the loss falls further.
How to cure it
    Build the optimizer from the final model: after heads are replaced, wrappers applied, weights re-assigned.
When it is wrong
    Leaving pre-trained weights out of the optimizer is a way to freeze them. If they were loaded and the optimizer holds
    nothing stale, this is a note at most. Adversarial inputs and meta-learned parameters are no parameters of a called model.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Parameter, Place
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import count, elements, names


@cause_rule(
    "stall/params-not-in-optimizer", explains=("stall/flat-loss", "stall/uniform-predictions"),
    settled_by=("optimizer-owns-all",), masks=("stall/params-frozen", "stall/inputs-and-targets-misaligned"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    steppers = [optimizer for optimizer in chart.optimizers.values() if optimizer.windows]
    if not steppers:
        return None
    hidden = {number for model in chart.models.values() for row in model.plain for number in row[4]}
    orphans = [
        p for p in chart.called_parameters()
        if not p.owners and p.number not in hidden and p.trainable and p.with_gradient >= min(3, p.looks) and p.looks and not p.moved
    ]  # fmt: skip
    if not orphans:
        return None
    if max(p.looks for p in orphans) < 3:
        return Missing("three windows with a backward")
    ghosts = _ghosts(chart)
    first = min(steppers, key=lambda optimizer: optimizer.made)
    late = [p for p in orphans if p.made > first.made]
    exchanged = [p for p in orphans if p not in late and p.put_in[1] > first.made]
    random = [p for p in orphans if not p.loaded]
    replaced = any(fact["assign"] and fact["t"] > first.made for fact in chart.weights_loaded)
    sure = bool(ghosts or late or exchanged or replaced or (random and not chart.weights_files))
    latest = sorted(steppers, key=lambda optimizer: -optimizer.made)
    where = [Spot(o.at, "it was built from other parameters") for o in latest if o.at][:2]
    where += [Spot(o.asked_at, "asked for here") for o in latest[:1] if o.asked_at]
    for at in sorted({p.made_at for p in late if p.made_at})[:2]:
        where.append(Spot(at, "made after the optimizer"))
    shapes = {p.shape for p in ghosts}
    alike = " in the place of one of the same shape" if all(p.shape in shapes for p in exchanged) else ""
    for at in sorted({p.put_in[0] for p in exchanged if p.put_in[0]})[:4]:
        where.append(Spot(at, f"a new parameter{alike}, made after the optimizer"))
    for at in sorted({p.frozen_at for p in orphans if p.frozen_at})[:1]:
        where.append(Spot(at, "frozen here, and made trainable again after the optimizer was built"))
    for fact in chart.weights_loaded:
        if fact["assign"] and fact["at"]:
            where.append(Spot(Place(fact["at"][0], fact["at"][1]), "assign=True puts new parameters into the model"))
    evidence = [
        f"{names(orphans)}: gradient in {orphans[0].with_gradient} of {orphans[0].looks} windows looked at, moved by 0",
        f"that is {elements(orphans):,} of the {elements(chart.called_parameters()):,} numbers of the model",
    ]
    if ghosts:
        evidence.append(f"the optimizer holds {count(ghosts, 'parameter')} that no called model has: it trains something else")
    return Seen(
        title=f"{count(orphans, 'parameter')} get gradients, and no optimizer holds them",
        where=where,
        evidence=evidence,
        severity="critical" if sure else "note",
        step=3,
        statement="the optimizer was built from other parameters than those that the model computes with",
        advice=[
            "Build the optimizer from the final model: after heads are replaced, wrappers applied and weights re-assigned."
            if ghosts or late or exchanged or replaced
            else "See how the parameters are chosen: these were there when the optimizer was built, and fit none of its groups."
        ],
    )


def _ghosts(chart: ProcessChart) -> list[Parameter]:
    """Parameters that an optimizer holds, that never get a gradient, and that belong to no model that was called."""
    called = {p.number for p in chart.called_parameters()}
    hidden = {number for model in chart.models.values() for row in model.plain for number in row[4]}
    return [
        p for number in chart.owned()
        if (p := chart.parameters.get(number)) and number not in called | hidden and p.looks >= 1 and not p.with_gradient
    ]  # fmt: skip
