"""The optimizer steps with gradients that are still multiplied by the scale.

What it detects
    A loss was scaled, its gradients reached an optimizer, and `optimizer.step()` was called directly: neither `scaler.step` nor
    `scaler.unscale_` nor the program itself had divided them again. The gradient at the step is compared with the one after backward.
Why it matters
    With SGD each step is tens of thousands of times too long. Adam divides the size away, but no Inf is caught any more, weight decay
    and epsilon lose their meaning, and the scale never adapts.
How it is confirmed
    By the size of a gradient, after backward and at the step, and by the state that the scaler keeps.
How to cure it
    `scaler.step(optimizer)` instead of `optimizer.step()`, for each optimizer, and one `scaler.update()` after them all.
When it is wrong
    Gradients that are divided by hand are not scaled any more; the comparison shows that, and the rule is silent.
"""

import math

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.halves import minds_size
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.origins import KINDS
from trainsleuth.rules.wording import count, number

ENOUGH = 3


@cause_rule(
    "precision/step-without-unscale", settled_by=("unscaled-in-time",),
    explains=("stall/flat-loss", "stall/uniform-predictions", "nan/loss-not-finite"),
    masks=("precision/clip-before-unscale", "stall/dead-units", "stall/vanishing-gradient", "stall/inputs-and-targets-misaligned",
           "stall/input-ignored", "precision/no-grad-scaler", *KINDS),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    broken = any(curve.not_finite for curve in chart.losses.values())
    for optimizer in chart.optimizers.values():
        steps = [fact for fact in chart.scaled_steps if fact["opt"] == optimizer.id]
        known = [fact for fact in steps if math.isfinite(fact["ratio"]) and math.isfinite(fact["scale"]) and fact["scale"] > 2]
        raw = [fact for fact in known if fact["ratio"] * fact["scale"] > 8]
        if not raw or 2 * len(raw) < len(known):
            continue
        if len(steps) < ENOUGH and not broken and chart.crash is None:
            return Missing("three steps with scaled gradients")
        grave = minds_size(optimizer) or broken
        scale = raw[-1]["scale"]
        return Seen(
            title=f"{optimizer.kind} steps with gradients that are still {number(scale)} times too large",
            where=[
                Spot(optimizer.step_at, "steps with scaled gradients") if optimizer.step_at else None,
                *[Spot(at, "the scaler") for fact in chart.scalers[:1] if (at := place(fact["at"]))],
            ],
            evidence=[
                f"in {count(steps, 'window')} looked at the gradients came from a scaled loss, and no scaler unscaled them before the step",
                f"gradient at the step against the one after backward: {number(raw[-1]['ratio'])}, unscaled it would be {number(1 / scale)}",
                *([] if minds_size(optimizer) else [f"{optimizer.kind} divides the size away, but an Inf is no longer caught"]),
            ],
            severity="critical" if grave else "warning",
            step=raw[min(len(raw), ENOUGH) - 1]["window"],
            statement="the step is made without the scaler, which alone would unscale the gradients",
            advice=["Call `scaler.step(optimizer)` instead of `optimizer.step()`, and `scaler.update()` once after all steps."],
        )
    return None
