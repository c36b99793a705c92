"""Weights of 16 bit stand still: each update is smaller than half a step of their type.

What it detects
    Parameters of bfloat16 or float16 that get gradients and are stepped with a learning rate above zero, and that after thirty windows
    are what they were at the first look. An update of the size that the optimizer makes is less than one step of the type at that weight.
Why it matters
    A bfloat16 of 1.0 has its neighbours at 0.996 and 1.008. An update of 0.001 is rounded away, each time, for ever. The weights of norm layers
    are near 1, so they go first; with a small learning rate all weights follow.
How it is confirmed
    By the weights themselves, and by the size of an update against the step of the type.
How to cure it
    Keep the weights in 32 bit and use autocast; or let the optimizer hold a copy in 32 bit; or a larger learning rate for these.
When it is wrong
    During a warm-up updates are small for a while: as long as the learning rate rises the rule waits. Embeddings, of which few rows are
    used, are left out.
"""

import math

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import HalfParameter, Optimizer, Parameter
from trainsleuth.rules.halves import minds_size, step_of
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import count, elements, names, number, percent

ENOUGH_WINDOWS = 30
ENOUGH_LOOKS = 5
NEGLIGIBLE = 1e-3
STANDS = 0.1  # share of its numbers that may have moved


@cause_rule(
    "precision/norm-weights-frozen", settled_by=("precision-32",), explains=("stall/flat-loss", "stall/uniform-predictions"),
    masks=("stall/inputs-and-targets-misaligned", "stall/input-ignored", "stall/params-frozen"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    for optimizer in chart.optimizers.values():
        held = [p for p in chart.half_parameters.values() if p.optimizer == optimizer.id]
        if not held:
            continue
        if optimizer.windows < ENOUGH_WINDOWS or max(p.looks for p in held) < ENOUGH_LOOKS:
            return Missing("thirty windows with weights of 16 bit")
        still = [p for p in held if p.changed <= STANDS and p.looks >= ENOUGH_LOOKS and _rounds_away(chart, optimizer, p)]
        if not still:
            continue
        if _rises(optimizer) and not chart.ended:
            return Missing("the learning rate to stop rising")
        parameters = [chart.parameters[p.number] for p in still]
        share = elements(parameters) / max(1, elements(_held(chart, optimizer)))
        shown = max(still, key=lambda p: p.median or 0.0)
        made = [p.made_at for p in parameters if p.made_at]
        return Seen(
            title=f"{count(still, 'parameter')} of {shown.dtype} never move: their updates are rounded away",
            where=[
                *[Spot(at, "made 16 bit here") for at in chart.halved[:1]],
                Spot(optimizer.at, "its updates are too small for weights of 16 bit") if optimizer.at else None,
                Spot(made[0], "stays as it was made") if made else None,
            ],
            evidence=[
                f"{names(parameters)}: they get gradients, and {_most(1 - max(p.changed for p in still))} of each is what it was at the first look",
                f"a {shown.dtype} weight of {number(shown.median or 0.0)} moves by {number(step_of(shown.dtype, shown.median or 0.0))} or not at "
                f"all; an update is about {number(_wanted(chart, optimizer, shown) or 0.0)}",
                f"that is {percent(share)} of the numbers that {optimizer.kind} holds",
            ],
            severity="critical" if share >= 0.5 else "warning",
            step=shown.window,
            statement="updates are smaller than half a step of the weights' type",
            advice=["Keep the weights in 32 bit and use autocast, or let the optimizer hold copies in 32 bit."],
            look_for="" if chart.halved else "half",
        )
    return None


def _rounds_away(chart: ProcessChart, optimizer: Optimizer, known: HalfParameter) -> bool:
    parameter = chart.parameters.get(known.number)
    if parameter is None or parameter.with_gradient < ENOUGH_LOOKS - 1 or known.not_finite or not known.median:
        return False
    if _kind(chart, parameter.name.rpartition(".")[0], parameter.model).startswith("Embedding"):
        return False
    wanted = _wanted(chart, optimizer, known)
    return wanted is not None and 0 < wanted < step_of(known.dtype, known.median)


def _wanted(chart: ProcessChart, optimizer: Optimizer, known: HalfParameter) -> float | None:
    """About how far an update would go: the learning rate with Adam and its kin, times the gradient with SGD."""
    if known.group >= len(optimizer.rates_by_group):
        return None
    rate = optimizer.rates_by_group[known.group][1]
    if not minds_size(optimizer):
        return rate
    parameter = chart.parameters[known.number]
    if optimizer.kind != "SGD" or not parameter.gradient:
        return None
    momentum = (
        float(optimizer.groups[known.group]["settings"].get("momentum") or 0.0) if known.group < len(optimizer.groups) else 0.0
    )
    typical = _per_number(parameter)
    if typical < NEGLIGIBLE * max(_per_number(other) for other in _held(chart, optimizer)):
        return None  # a bias before a norm layer, say, whose true gradient is zero
    return float(rate * typical / (1.0 - min(momentum, 0.99)))


def _held(chart: ProcessChart, optimizer: Optimizer) -> list[Parameter]:
    return [chart.parameters[n] for n in optimizer.parameters if n in chart.parameters]


def _per_number(parameter: Parameter) -> float:
    """The largest gradient that was seen, per number of the parameter."""
    sizes = [size for size in (*parameter.first_gradients, parameter.gradient or 0.0) if math.isfinite(size)]
    return float(max(sizes, default=0.0) / max(1, parameter.count) ** 0.5)


def _rises(optimizer: Optimizer) -> bool:
    points = optimizer.rates.points
    return len(points) > 1 and points[-1].most > 1.02 * points[max(0, len(points) - 4)].least


def _kind(chart: ProcessChart, path: str, model: str | None) -> str:
    known = chart.models.get(model or "")
    return known.modules.get(path, "") if known is not None else ""


def _most(share: float) -> str:
    return "all" if share == 1 else f"{percent(share)} or more"
