"""The scaler divides gradients that were never multiplied.

What it detects
    `scaler.step(optimizer)` is called for an optimizer whose gradients all come from a loss that did not go through `scaler.scale`. The scaler
    unscales them all the same.
Why it matters
    With SGD each step is tens of thousands of times too short, and the part that this optimizer trains hardly moves. Adam divides the size
    away, so that only its epsilon grows in effect. The gradients that scaling was meant to save underflow as without a scaler.
How it is confirmed
    By the graph of the loss at each backward, and by the state that the scaler keeps. The trial `scaler-off` leaves the gradients as they are.
How to cure it
    `scaler.scale(loss).backward()` for each loss whose optimizer the scaler steps.
When it is wrong
    Where a program scales several losses at once (`scaler.scale([one, other])`), nobody knows which is which, and the rule is silent.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.halves import minds_size
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import count, number

ENOUGH = 3


@cause_rule(
    "precision/loss-not-scaled", settled_by=("scaler-off",), explains=("stall/flat-loss", "stall/uniform-predictions"),
    masks=("stall/inputs-and-targets-misaligned", "stall/input-ignored", "precision/gradient-underflow", "precision/no-grad-scaler"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    for optimizer in chart.optimizers.values():
        looks = [fact for fact in chart.scaler_steps if fact["opt"] == optimizer.id]
        unscaled = [fact for fact in looks if not fact["scaled"]]
        if not unscaled or len(unscaled) < len(looks):
            continue
        if len(unscaled) < ENOUGH:
            return Missing("three steps of a scaler that were looked at")
        scale = unscaled[-1]["scale"]
        return Seen(
            title=f"the scaler divides the gradients of {optimizer.kind} by {number(scale)}, and nothing had multiplied them",
            where=[
                Spot(at, "this loss is not scaled") if (at := place(unscaled[-1]["backward_at"])) else None,
                Spot(optimizer.step_at, "unscales its gradients all the same") if optimizer.step_at else None,
                *[Spot(made, "the scaler") for fact in chart.scalers[:1] if (made := place(fact["at"]))],
            ],
            evidence=[
                f"in {count(unscaled, 'window')} of {len(looks)} looked at the gradients came from a loss that no scaler had scaled",
                *([] if minds_size(optimizer) else [f"{optimizer.kind} divides the size away; its epsilon counts {number(scale)} times as much"]),
            ],
            severity="critical" if minds_size(optimizer) else "note",
            step=unscaled[ENOUGH - 1]["window"],
            statement="the loss does not go through the scaler that steps its optimizer",
            advice=["Call `scaler.scale(loss).backward()` for this loss, or step this optimizer without the scaler."],
        )
    return None
