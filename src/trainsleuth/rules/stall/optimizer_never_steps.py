"""Gradients are computed, and no optimizer ever uses them.

What it detects
    Backward delivered gradients to an optimizer's parameters through a whole pass over the loader (or 64 times without one), the
    optimizer never stepped, and the weights are what they were at the start. Of several optimizers also one alone, if its gradients are made
    and cleared to the end of the run.
Why it matters
    Nothing is learnt. The loss only shows the noise of the batches.
How it is confirmed
    By the weights themselves: not one of them changed.
How to cure it
    Call `optimizer.step()` (with parentheses), and check the condition it stands under: `(i + 1) % accumulation == 0` is never
    true when the loader has fewer batches than that and `i` restarts each epoch.
When it is wrong
    A program that updates its weights by hand moves them: then the rule is silent. One of several optimizers may be meant to begin later than
    the run lasted: where it holds less than two thirds of the weights, this is only a note.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Optimizer, Parameter
from trainsleuth.rules.kinds import Missing, Seen, Severity, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import elements

MANY = 64
ENOUGH = 12  # backwards that fed it, among those that were looked at
MOST_OF_IT = 2 / 3


@cause_rule(
    "stall/optimizer-never-steps", settled_by=("step-every-window",), explains=("stall/flat-loss", "stall/uniform-predictions"),
    masks=("stall/params-frozen", "stall/no-gradient", "stall/inputs-and-targets-misaligned", "stall/input-ignored"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    idle = [optimizer for optimizer in chart.optimizers.values() if not optimizer.windows and optimizer.delivered]
    if not idle or not chart.backwards:
        return None
    steps = any(optimizer.windows for optimizer in chart.optimizers.values())
    return _beside_others(chart, idle) if steps else _none_steps(chart, idle)


def _none_steps(chart: ProcessChart, fed: list[Optimizer]) -> Verdict:
    passed = any(p["backwards"] >= 2 for loader in chart.loaders.values() for p in loader.passes)
    if not (passed or chart.backwards >= MANY or (chart.ended and chart.backwards >= 8)):
        return Missing("a whole pass over the loader without a step")
    looked = sum(fact["looked"] for fact in chart.unstepped.values())
    if not looked:
        return Missing("whether the weights move by other means")
    if any(fact["moved"] for fact in chart.unstepped.values()):
        return None
    return _seen(chart, fed, f"{chart.backwards:,} backward passes, and the optimizer never stepped", looked, "critical")


def _beside_others(chart: ProcessChart, idle: list[Optimizer]) -> Verdict:
    """One optimizer of several: its gradients are made and cleared through the whole run, and it makes no step."""
    held = {number for optimizer in chart.optimizers.values() if optimizer.windows for number in optimizer.parameters}
    for optimizer in idle:
        fact = chart.unstepped.get(optimizer.id)
        if chart.backwards < MANY or optimizer.delivered < ENOUGH or optimizer.cleared_at is None or held.intersection(optimizer.parameters):
            continue
        if fact is None or not fact["looked"] or fact["moved"]:
            continue
        if not (chart.ended or chart.stopped):
            return Missing("the end of the run: until then this optimizer may begin to step")
        title = f"one of {len(chart.optimizers)} optimizers never stepped, though backward feeds it (seen {optimizer.delivered:,} times)"
        most = elements(_held(chart, [optimizer])) > MOST_OF_IT * elements(_held(chart, list(chart.optimizers.values())))
        return _seen(chart, [optimizer], title, fact["looked"], "warning" if most else "note")
    return None


def _held(chart: ProcessChart, optimizers: list[Optimizer]) -> list[Parameter]:
    numbers = {number for optimizer in optimizers for number in optimizer.parameters}
    return [chart.parameters[number] for number in numbers if number in chart.parameters]


def _seen(chart: ProcessChart, fed: list[Optimizer], title: str, looked: int, severity: Severity) -> Seen:
    main = chart.main_loss()
    return Seen(
        title=title,
        where=[
            *[Spot(o.at, "this optimizer's step never ran") for o in fed if o.at],
            *[Spot(o.cleared_at, "its gradients are cleared here") for o in fed[:1] if o.cleared_at],
            Spot(main[0], "gradients are made here") if main else None,
        ],
        evidence=[
            f"{fed[0].kind} got gradients from {fed[0].delivered:,} backward passes and made 0 steps",
            f"none of the {looked} parameters looked at has changed since the optimizer was built",
        ],
        severity=severity,
        statement="the optimizer's step is never executed",
        advice=["Call `optimizer.step()` with parentheses, and check that the condition around it can become true."],
        look_for="step",
    )
