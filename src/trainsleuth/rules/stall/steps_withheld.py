"""The program and Accelerate both count micro-batches, and do not agree when a step is due.

What it detects
    The optimizer that Accelerate has prepared is told to step at micro-batches where Accelerate is still accumulating, which does nothing, and
    most of the micro-batches that complete an accumulation pass without a step.
Why it matters
    Next to no step is made. The loss falls a little, because the last batch of each epoch completes an accumulation, too.
How it is confirmed
    By counting: steps that were asked for, steps that were withheld, accumulations that were completed. A trial lets every step through that
    the program asks for (knob `no-step-withheld`).
How to cure it
    Inside `with accelerator.accumulate(model):` call step, scheduler and zero_grad for every micro-batch, without a condition.
When it is wrong
    An optimizer that is meant to step less often than the others; then no step of it would be asked for while Accelerate accumulates.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import count

ENOUGH = 12  # accumulations


@cause_rule(
    "stall/steps-withheld", settled_by=("no-step-withheld",), explains=("stall/flat-loss", "stall/uniform-predictions"),
    masks=("stall/optimizer-never-steps", "stall/inputs-and-targets-misaligned", "stall/input-ignored"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    for fact in chart.steps_withheld.values():
        asked, withheld, completed = fact["asked"], fact["withheld"], fact["completed"]
        if not withheld or 2 * (asked - withheld) >= completed:
            continue
        if completed < ENOUGH:
            return Missing(f"{ENOUGH} accumulations that Accelerate has completed")
        at = place(fact["at"])
        optimizer = chart.optimizers.get(fact["opt"])
        return Seen(
            title=f"Accelerate withheld {withheld:,} of {count(asked, 'step')}: they come before an accumulation is complete",
            where=[
                Spot(at, "asked for here") if at else None,
                Spot(optimizer.at, "the optimizer") if optimizer is not None and optimizer.at else None,
            ],
            evidence=[
                f"{completed:,} accumulations of {count(fact['accumulates'], 'micro-batch')} were completed, "
                f"and only {asked - withheld:,} of them had a step",
                f"{fact['backwards']:,} backward passes until then",
            ],
            severity="critical",
            step=min(chart.windows, ENOUGH) or None,
            statement="the program steps at other micro-batches than those that complete an accumulation",
            advice=["Inside `with accelerator.accumulate(model):` call step, scheduler.step and zero_grad for each micro-batch, unconditionally."],
        )
    return None
