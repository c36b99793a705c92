"""Units that are zero for every input, so no gradient can revive them.

What it detects
    In the latest looks a layer's gradient is exactly 0 although layers behind it have one, and, where the deep window saw it, a
    ReLU gives 0 for at least 95 % of its units over the whole batch.
Why it matters
    A ReLU that is zero for every input passes no gradient: the layers before it can never change again.
How it is confirmed
    By the gradient: not small, but exactly zero.
How to cure it
    Smaller learning rate or warm-up, no large negative bias, LeakyReLU or GELU, a norm layer before the activation.
When it is wrong
    Sparse activations are fine as long as other inputs wake the units; only units that are dead for the whole batch count, and the
    layer before them must have a gradient of exactly zero.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.stall.vanishing_gradient import signal_fades
from trainsleuth.rules.wording import names, percent

DEAD = 0.95  # of a layer's units
RECTIFIERS = ("ReLU", "ReLU6", "Hardtanh", "Hardswish")


@cause_rule(
    "stall/dead-units", settled_by=("leaky", "learning-rate-tenth"), explains=("stall/flat-loss", "stall/uniform-predictions"), structural=False,
    masks=("stall/input-ignored", "stall/inputs-and-targets-misaligned", "stall/vanishing-gradient"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    owned = [p for p in chart.called_parameters() if p.owners and p.trainable and p.looks >= 3]
    if not owned:
        return Missing("three windows with a backward")
    dead = [p for p in owned if p.gradient == 0 and p.zero_gradient >= 2]
    alive = [p for p in owned if p.gradient]
    if not dead or not alive or signal_fades(chart) is not None:
        return None
    last = next((fact for fact in reversed(chart.deep) if fact["calls"]), None)
    rectified = [row for row in (last["calls"] if last else []) if row[3] in RECTIFIERS and row[15] is not None]
    worst = max(rectified, key=lambda row: row[15], default=None)
    if worst is not None and worst[15] < DEAD:
        return None
    if worst is None and sum(p.count for p in dead) < 0.5 * sum(p.count for p in owned):
        return None
    if worst is None and not _zeros_before_the_head(last):
        return None
    at = place(worst[4]) if worst else None
    died = all(p.first_gradients and p.first_gradients[0] for p in dead)
    optimizer = chart.main_optimizer()
    shares = (
        f"{percent(worst[15])} of the units of {worst[2] or worst[3]} are zero for every sample of the batch" if worst else ""
    )
    return Seen(
        title=f"{percent(worst[15]) if worst else 'most'} of the units before the head are dead: their layers get a gradient of exactly 0",
        where=[
            Spot(optimizer.at, "its steps killed them: they were alive at the start")
            if died and optimizer and optimizer.at
            else None,
            *[Spot(p, "the dead layer was built here") for p in dict.fromkeys(p.made_at for p in dead if p.made_at)][:2],
            Spot(at, "called here") if at else None,
        ],
        evidence=[
            f"{names(dead)}: gradient exactly 0 in {dead[0].zero_gradient} of {dead[0].looks} looks",
            *([shares] if shares else []),
        ],
        step=chart.windows,
        statement="a step was too large and pushed the activations below zero for every input"
        if died
        else "the activations are zero for every input, from the start",
        advice=["Lower the learning rate or warm it up, check the bias, or use LeakyReLU, GELU or a norm layer."],
    )


def _zeros_before_the_head(fact: object) -> bool:
    """With a functional ReLU the calls show no activation: a layer gives nothing positive, and the next one receives zeros."""
    if not isinstance(fact, dict):
        return False
    calls = fact["calls"]
    starved = [row[0] for row in calls if row[11] is not None and row[11] >= 0.95]
    parents = {row[1] for row in calls}
    negative = [row[0] for row in calls if row[14] is not None and row[12] and row[14] <= 0.05 and row[0] not in parents]
    return any(giver < receiver for giver in negative for receiver in starved)
