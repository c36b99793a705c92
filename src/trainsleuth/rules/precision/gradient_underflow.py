"""Gradients are too small for float16 and become zero.

What it detects
    In at least a third of the backwards looked at, and in the latest, gradients of float16 vanish: at a cast from 32 bit a tenth of the
    gradient, by size, is below what float16 can hold, or half of what is left of a weight's gradient sits on the four lowest steps.
    The layers are named.
Why it matters
    What is zero does not move. The layers far from the loss go first.
How it is confirmed
    By the gradients themselves, module by module. Zeros alone, which a ReLU gives too, do not count.
How to cure it
    A larger scale of the loss (`GradScaler` with its usual `init_scale`), weights of 32 bit under autocast instead of `model.half()`,
    no division of the loss by large numbers, or bfloat16.
When it is wrong
    A model that has learnt its data by heart has tiny gradients by right; then most looks before that are clean, and the rule is silent.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.halves import ENOUGH_LOOKS, in_float16, vanishing
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import number


@cause_rule(
    "precision/gradient-underflow", settled_by=("scaler-on",), explains=("stall/flat-loss", "stall/uniform-predictions"),
    masks=("stall/vanishing-gradient", "stall/dead-units", "stall/inputs-and-targets-misaligned", "stall/input-ignored"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    looks = in_float16(chart)
    if not looks:
        return None
    if len(looks) < ENOUGH_LOOKS:
        return Missing("three backwards with gradients of 16 bit")
    found = vanishing(chart, looks)
    if not found.lasting:
        return None
    at = place(looks[-1]["at"])
    made = [Spot(there, "its scale is too small") for fact in chart.scalers[:1] if (there := place(fact["at"]))]
    pure = any(known.dtype == "float16" for known in chart.half_parameters.values())
    optimizer = chart.main_optimizer()
    return Seen(
        title="gradients vanish: they are too small for float16",
        where=[
            *([Spot(at, "made 16 bit here") for at in chart.halved[:1]] if pure and not made else made),
            Spot(at, "gradients that start here become zero on their way") if at else None,
            optimizer.at if pure and optimizer else None,
        ],
        evidence=[
            *found.evidence(),
            *([f"the scale of the loss was {number(chart.scales[-1][1])}"] if chart.scales else []),
            *(["the weights themselves are float16"] if pure else []),
        ],
        severity="critical" if found.grave else "warning",
        step=looks[ENOUGH_LOOKS - 1]["window"],
        statement="gradients are smaller than the smallest number of float16",
        advice=["Keep the weights in 32 bit, use autocast and a GradScaler with its usual scale; or use bfloat16."],
        look_for="half" if pure and not made and not chart.halved else "",
    )
