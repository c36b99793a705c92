"""Gradients are clipped while they are still multiplied by the scale.

What it detects
    `clip_grad_norm_` or `clip_grad_value_` changed gradients that a scaler had multiplied and not yet divided again.
Why it matters
    The limit is meant for true gradients. Scaled ones are tens of thousands of times larger: each step is clipped, and after unscaling
    the gradient is as many times too small. SGD then hardly moves; Adam divides the size away but loses what it knows of sizes.
How it is confirmed
    By the norm that the clip function found, the scale at that time, and the state that the scaler keeps.
How to cure it
    `scaler.unscale_(optimizer)` once, right before the clip; `scaler.step` then does not unscale again.
When it is wrong
    A limit that scaled gradients never reach changes nothing; then the rule is silent.
"""

import math

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Optimizer, place
from trainsleuth.case.reading import Fact
from trainsleuth.rules.halves import minds_size
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import count, number, percent

ENOUGH = 3
SOMETIMES = 0.1


@cause_rule(
    "precision/clip-before-unscale", settled_by=("unscaled-in-time",), explains=("stall/flat-loss", "stall/uniform-predictions"),
    masks=("stall/inputs-and-targets-misaligned", "stall/input-ignored"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    for optimizer in chart.optimizers.values():
        seen = [fact for fact in chart.clips if fact["opt"] == optimizer.id and _known(fact)]
        active = [fact for fact in seen if _clipped(fact)]
        if not active or len(active) < SOMETIMES * len(seen):
            continue
        if len(active) < ENOUGH:
            return Missing("three windows in which gradients were clipped")
        last = active[-1]
        at, scale, limit = place(last["at"]), last["scale"], last["limit"]
        needless = [fact for fact in active if fact["fn"] != "clip_grad_value_" and fact["seen"] / fact["scale"] <= limit]
        return Seen(
            title=f"gradients are clipped while they are still scaled: the limit of {number(limit)} acts as {number(limit / scale)}",
            where=[Spot(at, "clips scaled gradients") if at else None, optimizer.step_at],
            evidence=[
                f"in {len(active)} of {count(seen, 'window')} looked at the clip changed scaled gradients; the scale was {number(scale)}",
                _what_it_found(last),
                *(
                    [f"in {len(needless)} of these windows the true norm was within the limit: nothing was to be clipped"]
                    if needless
                    else []
                ),
            ],
            severity="critical" if 2 * len(active) >= len(seen) and _harms(chart, optimizer, last) else "warning",
            step=active[ENOUGH - 1]["window"],
            statement="the gradients are clipped before the scaler has unscaled them",
            advice=["Call `scaler.unscale_(optimizer)` right before the clip."],
        )
    return None


def _known(fact: Fact) -> bool:
    values = (fact["scale"], fact["seen"], fact["limit"])
    return all(isinstance(value, (int, float)) and math.isfinite(value) for value in values) and fact["scale"] > 2


def _clipped(fact: Fact) -> bool:
    return bool(fact["seen"] > fact["limit"] if fact["fn"] != "clip_grad_value_" else fact["seen"] > 0.01)


def _what_it_found(fact: Fact) -> str:
    if fact["fn"] != "clip_grad_value_":
        true = fact["seen"] / fact["scale"]
        left = fact["limit"] / fact["scale"]
        return f"norm found by the clip: {number(fact['seen'])}; true norm: {number(true)}; left after clipping and unscaling: {number(left)}"
    cut = f"{percent(fact['seen'])} of a small gradient were cut off at {number(fact['limit'])}"
    return f"{cut}, which is {number(fact['limit'] / fact['scale'])} unscaled"


def _harms(chart: ProcessChart, optimizer: Optimizer, fact: Fact) -> bool:
    """SGD's step shrinks with the gradient; Adam's does once the gradient is far below its epsilon."""
    if minds_size(optimizer):
        return True
    numbers = sum(chart.parameters[n].count for n in optimizer.parameters if n in chart.parameters)
    epsilon = max((float(group["settings"].get("eps") or 0.0) for group in optimizer.groups), default=0.0)
    typical = fact["limit"] / fact["scale"] / (max(1, numbers) ** 0.5 if fact["fn"] != "clip_grad_value_" else 1.0)
    return bool(typical < 0.1 * epsilon)
