"""The gradient dies on its way to the first layers.

What it detects
    The loss stands still at chance, and the gradient of the first layers, per weight, is less than a ten-thousandth of the last
    layers', in every look. Layers between show the slope.
Why it matters
    The first layers hardly move; what they pass on stays as random as it was at the start.
How it is confirmed
    By the norms, layer by layer.
How to cure it
    ReLU or GELU instead of sigmoid or tanh, residual connections, a norm layer, a proper initialisation.
When it is wrong
    Networks with uneven gradients may learn well; without the symptom the rule is silent.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.standing import standing
from trainsleuth.rules.wording import number

RATIO = 1e-4


@cause_rule(
    "stall/vanishing-gradient", settled_by=("relu-inside",), explains=("stall/flat-loss", "stall/uniform-predictions"), structural=False,
    masks=("stall/input-ignored", "stall/inputs-and-targets-misaligned"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    weights = [
        p for p in chart.called_parameters() if p.owners and len(p.shape) >= 2 and p.first_gradients and p.gradient is not None
    ]
    if len(weights) < 4:
        return None
    now = standing(chart)
    if isinstance(now, str):
        return Missing(now)
    if not now.stuck:
        return None
    per_weight = [min(p.first_gradients[:3] + [p.gradient or 0.0]) / p.count**0.5 for p in weights]
    largest = [max(p.first_gradients[:3] + [p.gradient or 0.0]) / p.count**0.5 for p in weights]
    end = max(per_weight[-max(1, len(weights) // 4) :])
    start = max(largest[: max(1, len(weights) // 4)])
    if end == 0 or start > RATIO * end:
        return None
    first, last = weights[0], weights[-1]
    return Seen(
        title=f"the gradient of {first.name} is {number(end / start) if start else 'infinitely many'} times smaller than that of {last.name}",
        where=[
            Spot(first.made_at, "this layer hardly moves") if first.made_at else None,
            *[model.at for model in chart.models.values()][:1],
        ],
        evidence=[
            "gradient per weight, first layer to last: "
            + ", ".join(number(value) for value in largest[:: max(1, len(largest) // 5)]),
            f"update of {first.name} in the last look: {number((first.update or 0) / first.weight) if first.weight else '0'} of its size",
        ],
        step=now.curve.count,
        statement="the gradient vanishes between the last and the first layers",
        advice=["ReLU or GELU instead of saturating activations, residual connections, a norm layer, a proper initialisation."],
        certain=True,
    )
