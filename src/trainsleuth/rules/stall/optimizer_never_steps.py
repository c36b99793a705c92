"""Gradients are computed, and no optimizer ever uses them.

What it detects
    Backward delivered gradients to an optimizer's parameters through a whole pass over the loader (or 64 times without one), the
    optimizer never stepped, and the weights are what they were at the start.
Why it matters
    Nothing is learnt. The loss only shows the noise of the batches.
How it is confirmed
    By the weights themselves: not one of them changed.
How to cure it
    Call `optimizer.step()` (with parentheses), and check the condition it stands under: `(i + 1) % accumulation == 0` is never
    true when the loader has fewer batches than that and `i` restarts each epoch.
When it is wrong
    A program that updates its weights by hand moves them: then the rule is silent.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule

MANY = 64


@cause_rule(
    "stall/optimizer-never-steps", settled_by=("step-every-window",), explains=("stall/flat-loss", "stall/uniform-predictions"),
    masks=("stall/params-frozen", "stall/no-gradient", "stall/inputs-and-targets-misaligned", "stall/input-ignored"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    if not chart.optimizers or not chart.backwards or any(optimizer.windows for optimizer in chart.optimizers.values()):
        return None
    fed = [optimizer for optimizer in chart.optimizers.values() if optimizer.delivered]
    if not fed:
        return None
    passed = any(p["backwards"] >= 2 for loader in chart.loaders.values() for p in loader.passes)
    if not (passed or chart.backwards >= MANY or (chart.ended and chart.backwards >= 8)):
        return Missing("a whole pass over the loader without a step")
    if chart.unstepped is None or chart.unstepped["looked"] == 0:
        return Missing("whether the weights move by other means")
    if chart.unstepped["moved"]:
        return None
    main = chart.main_loss()
    backwards = chart.backwards
    return Seen(
        title=f"{backwards:,} backward passes, and the optimizer never stepped",
        where=[
            *[Spot(o.at, "this optimizer's step never ran") for o in fed if o.at],
            Spot(main[0], "gradients are made here") if main else None,
        ],
        evidence=[
            f"{fed[0].kind} got gradients from {fed[0].delivered:,} backward passes and made 0 steps",
            f"none of the {chart.unstepped['looked']} parameters looked at has changed since the optimizer was built",
        ],
        statement="the optimizer's step is never executed",
        advice=["Call `optimizer.step()` with parentheses, and check that the condition around it can become true."],
        look_for="step",
    )
