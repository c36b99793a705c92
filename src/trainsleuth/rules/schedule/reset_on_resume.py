"""A resumed run starts its learning-rate schedule anew.

What it detects
    The optimizer's state was loaded with steps already made, its scheduler was not loaded, and the learning rate that is then used
    differs from the loaded one by more than a factor of two; or it is higher at all, and this process has made the same schedule before.
Why it matters
    A model near its optimum is hit with the learning rate of the start, or warmed up again from nothing.
How it is confirmed
    By the rates before and after.
How to cure it
    Save and load the scheduler's state too, or set `last_epoch`.
When it is wrong
    A new schedule on purpose (a second phase) usually builds a new optimizer as well.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import number

LEAST_JUMP = 2.0
LEAST_STEP = 1.02  # upwards, where this process has made the same schedule before


@cause_rule("schedule/reset-on-resume", structural=False)
def rule(chart: ProcessChart) -> Verdict:
    for optimizer in chart.optimizers.values():
        for fact in optimizer.loaded:
            schedulers = [s for s in chart.schedulers.values() if s.optimizer == optimizer.id]
            steps = fact.get("state_step")
            resumed = steps >= 10 if steps is not None else bool(fact.get("has_state"))  # SGD keeps momentum, and no count
            if not schedulers or any(s.loaded for s in schedulers) or not resumed:
                continue
            saved = max((rate for rate in fact.get("rates", [])), default=0.0)
            after = [p for p in optimizer.rates.points if p.to > fact["windows"]][:8]
            if not after:
                return Missing("a step after the optimizer's state was loaded")
            used = max(p.most for p in after)
            again = len({s.id for s in chart.schedulers.values() if s.at == schedulers[-1].at}) > 1  # the same schedule was made before
            if saved <= 0 or (max(saved, used) <= LEAST_JUMP * min(saved, used) and not (again and used > LEAST_STEP * saved)):
                continue
            at = place(fact["at"])
            return Seen(
                title=f"resumed {'' if steps is None else f'at step {int(steps)} '}with a schedule that starts anew: "
                f"learning rate {number(saved)} → {number(used)}",
                where=[
                    Spot(schedulers[-1].at, "its state is not loaded") if schedulers[-1].at else None,
                    Spot(at, "the optimizer's state is") if at else None,
                ],
                evidence=[f"the loaded optimizer had a learning rate of {number(saved)}, the steps after it used {number(used)}"],
                severity="warning",
                step=optimizer.windows,
                statement="the scheduler's state was not restored",
                advice=["Save scheduler.state_dict() with the optimizer's, and load both."],
            )
    return None
