"""The optimizer's epsilon is zero in float16.

What it detects
    Weights and second moments are float16, and the optimizer's `eps` is smaller than float16 can hold. It is critical when numbers that
    have a gradient have a second moment of zero, or weights are no longer finite; a note until then.
Why it matters
    Epsilon keeps Adam from dividing by zero. 1e-8 is 0 in float16, and so is what Adam keeps of the square of a gradient below about
    0.005: the first step gives Inf or NaN.
How it is confirmed
    By the optimizer's own state: second moments that are zero where the gradient is not.
How to cure it
    Weights of 32 bit under autocast; or keep a copy of the weights in 32 bit for the optimizer; or at least `eps=1e-4`.
When it is wrong
    Optimizers that keep their state in 32 bit are not concerned. In bfloat16 1e-8 is fine.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import HalfParameter
from trainsleuth.rules.halves import SMALLEST
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.origins import KINDS
from trainsleuth.rules.wording import count, names, number, percent


@cause_rule(
    "precision/optimizer-epsilon", settled_by=("epsilon",), explains=("stall/flat-loss", "stall/uniform-predictions", "nan/loss-not-finite"),
    masks=("precision/gradient-underflow", "precision/norm-weights-frozen", "precision/loss-computed-in-half", "stall/dead-units",
           "stall/inputs-and-targets-misaligned", *KINDS),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    for optimizer in chart.optimizers.values():
        held = [p for p in chart.half_parameters.values() if p.optimizer == optimizer.id and p.dtype == p.state == "float16"]
        small = [p for p in held if 0 < _epsilon(optimizer.groups, p) <= 2.0 ** (SMALLEST["float16"] - 1)]
        if not small:
            continue
        lost = [p for p in small if p.squares_lost > 0.01]
        spoilt = [p for p in small if p.not_finite]
        parameters = [chart.parameters[p.number] for p in spoilt or lost or small if p.number in chart.parameters]
        worst = max(small, key=lambda p: p.squares_lost)
        return Seen(
            title=f"eps={_epsilon(optimizer.groups, small[0]):g} of {optimizer.kind} is 0 in float16"
            + (": weights are divided by zero" if lost or spoilt else ""),
            where=[Spot(optimizer.at, "built with an epsilon that its weights cannot hold") if optimizer.at else None],
            evidence=[
                f"{count(small, 'parameter')} and their second moments are float16, which ends at {number(2.0 ** SMALLEST['float16'])}",
                *(
                    [f"second moment 0 where the gradient is not: up to {percent(worst.squares_lost)} of a parameter"]
                    if lost
                    else []
                ),
                *([f"{names(parameters)}: no longer finite"] if spoilt else []),
            ],
            severity="critical" if lost or spoilt else "note",
            step=1 if lost or spoilt else None,
            statement="epsilon and the squares of the gradients are too small for float16",
            advice=["Keep the weights in 32 bit and use autocast; or give the optimizer `eps=1e-4`."],
        )
    return None


def _epsilon(groups: list[dict[str, object]], known: HalfParameter) -> float:
    settings = groups[known.group]["settings"] if known.group < len(groups) else {}
    value = settings.get("eps") if isinstance(settings, dict) else None
    return float(value) if isinstance(value, (int, float)) else 0.0
