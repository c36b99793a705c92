"""The model learns nothing but the frequencies of the targets, and everything mechanical is in order.

What it detects
    The loss stands still at the level of guessing for at least 150 steps; every parameter is held, gets a gradient and moves; the
    predictions differ between samples; the labels vary. What is left: the targets do not belong to the inputs.
Why it matters
    A permutation applied to inputs and not to targets, or a batch that is off by one, looks like a hard problem.
How it is confirmed
    Watching cannot settle it. The trial `overfit-one-batch` can: a fixed batch that can be learnt by heart shows that model, loss
    and optimizer work, and the pairing of inputs and targets is at fault.
How to cure it
    Follow one sample by hand from the file to the loss; shuffle pairs, never sides.
When it is wrong
    Problems that are really as hard as that, learning rates that are far too small or too large, long plateaus. It is a suspicion.
"""

import math

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.standing import standing
from trainsleuth.rules.wording import number

MANY = 150


@cause_rule(
    "stall/inputs-and-targets-misaligned", explains=("stall/flat-loss", "stall/uniform-predictions"), settled_by=("overfit-one-batch",),
    structural=False, last_resort=True,
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    now = standing(chart)
    if isinstance(now, str):
        return Missing(now)
    if not now.stuck:
        return None
    if now.curve.count < MANY:
        return Missing(f"{MANY} values of a loss that stands still (there are {now.curve.count})")
    entropies = now.calls.numbers("entropy")
    if now.classes and entropies and min(entropies[-3:]) > 0.9995 * math.log(now.classes):
        return None  # the predictions say nothing at all: that is another sickness
    held = [p for p in chart.called_parameters() if p.owners and p.trainable and p.looks >= 3]
    if not held or any(not p.with_gradient or not p.moved for p in held):
        return None
    ratios = [p.update / p.weight for p in held if p.update and p.weight]
    if not ratios or max(ratios) < 1e-6:
        return None
    loaders = [loader.at for loader in chart.loaders.values() if loader.at]
    return Seen(
        title="nothing is learnt but the frequencies of the targets: do they belong to these inputs?",
        where=[
            Spot(now.calls.at, "inputs and targets meet here") if now.calls.at else None,
            *[Spot(at, "the data come from here") for at in loaders[:1]],
        ],
        evidence=[
            f"loss {number(now.level)} after {now.curve.count:,} steps; guessing from the frequencies gives {number(now.chance)}",
            f"all {len(held)} parameters get gradients and move (by up to {number(max(ratios))} of their size in a step)",
            "predictions differ between samples, targets vary: no mechanical fault was found",
        ],
        severity="warning",
        step=now.curve.count,
        statement="targets may be paired with the wrong inputs",
        advice=["Follow one sample from file to loss. The trial `overfit-one-batch` would settle it."],
        certain=False,
    )
