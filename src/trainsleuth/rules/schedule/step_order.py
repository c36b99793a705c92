"""The scheduler is stepped before the optimizer.

What it detects
    The scheduler's first step came before any step of its optimizer, though gradients were there or followed.
Why it matters
    The first value of the schedule is skipped, and everything after it is one off; with a long warm-up or few epochs it matters.
How it is confirmed
    By the order of the calls.
How to cure it
    `optimizer.step()` first, then `scheduler.step()`.
When it is wrong
    A step that a gradient scaler skipped counts as made: silent.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule


@cause_rule("schedule/step-order")
def rule(chart: ProcessChart) -> Verdict:
    for scheduler in chart.schedulers.values():
        optimizer = chart.optimizers.get(scheduler.optimizer or "")
        if optimizer is None or optimizer.windows < 2 or optimizer.skipped or len(scheduler.steps) < 2:
            continue
        first, second = scheduler.steps[0], scheduler.steps[1]
        if first["steps"] != 0 or first["n"] != 1 or optimizer.loaded or second["steps"] == 0:
            continue
        at = place(first["at"])
        return Seen(
            title=f"{scheduler.kind} is stepped before the optimizer: the first learning rate is never used",
            where=[Spot(at, "this must come after optimizer.step()") if at else None, optimizer.step_at],
            evidence=[
                f"first scheduler step after 0 optimizer steps, second after {second['steps']}",
                *([f"the rate was {first['rates'][0]:g} before it, and no step used that"] if first["rates"] else []),
            ],
            severity="warning",
            step=1,
            statement="scheduler.step() comes before optimizer.step()",
            advice=["Swap the two calls."],
        )
    return None
