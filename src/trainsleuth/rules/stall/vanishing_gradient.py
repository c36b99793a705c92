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

from itertools import pairwise

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.standing import standing
from trainsleuth.rules.wording import number

RATIO = 1e-4
AT_ONCE = 1e-3
FADED = 1e-4  # of the spread between samples at the first layer


@cause_rule(
    "stall/vanishing-gradient", settled_by=("relu-inside",), explains=("stall/flat-loss", "stall/uniform-predictions"), structural=False,
    masks=("stall/input-ignored", "stall/inputs-and-targets-misaligned"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    weights = [
        p for p in chart.called_parameters() if p.owners and len(p.shape) >= 2 and p.first_gradients and p.gradient is not None
    ]
    faded = signal_fades(chart)
    if len(weights) < 4 and faded is None:
        return None
    now = standing(chart)
    if isinstance(now, str):
        return Missing(now)
    if not now.stuck:
        return None
    if len(weights) < 4:
        return faded
    per_weight = [min(p.first_gradients[:3] + [p.gradient or 0.0]) / p.count**0.5 for p in weights]
    largest = [max(p.first_gradients[:3] + [p.gradient or 0.0]) / p.count**0.5 for p in weights]
    end = max(per_weight[-max(1, len(weights) // 4) :])
    start = max(largest[: max(1, len(weights) // 4)])
    if end == 0 or start > RATIO * end:
        return faded
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


def signal_fades(chart: ProcessChart) -> Seen | None:
    """Forwards: in the first look what tells samples apart gets lost on the way, because the weights are too small for their layers."""
    layers = [row for row in chart.deep[0]["calls"] if row[1] >= 0 and row[8] is not None and row[9]] if chart.deep else []
    if len(layers) < 4 or layers[-1][9] > FADED * layers[0][9]:
        return None
    if any(later[9] < AT_ONCE * earlier[9] for earlier, later in pairwise(layers)):
        return None  # lost in one place: what is there is the fault, not the sizes of the weights
    at, called = place(layers[-1][4]), chart.deep[0]["window"]
    return Seen(
        title=f"what tells samples apart fades on its way: {number(layers[0][9])} at the first layer, {number(layers[-1][9])} at {layers[-1][2]}",
        where=[
            *[Spot(p.made_at, "this layer is built here") for p in chart.called_parameters()[:1] if p.made_at],
            Spot(at, "called here") if at else None,
        ],
        evidence=[
            "spread between samples, first layer to last: " + ", ".join(number(row[9]) for row in layers[:: max(1, len(layers) // 5)]),
            f"seen before step {called + 1}: the weights begin too small for this many layers without a norm between them",
        ],
        step=1,
        statement="the weights are so small at the start that the signal, and with it the gradient, vanishes",
        advice=["Initialise by the size of each layer (kaiming_normal_, xavier_uniform_), or put a norm layer between."],
    )
