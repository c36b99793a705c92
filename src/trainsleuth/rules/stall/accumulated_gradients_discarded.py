"""Gradients are cleared before a step has used them.

What it detects
    In at least two windows gradients of one or more backward passes were gone before the optimizer's step, without another
    optimizer having used them. Counted are micro-batches: delivered, and thrown away.
Why it matters
    With accumulation over 8 micro-batches and a `zero_grad` in the wrong place, 7 of 8 are computed for nothing, and the step
    follows the noise of the last one. Nothing warns.
How it is confirmed
    A trial in which clearing happens only after a step (knob `clear-only-after-step`): nothing is thrown away, and the loss falls
    further in the same number of steps.
How to cure it
    Call `zero_grad` right after `step`, nowhere else.
When it is wrong
    GANs throw away what the generator's loss leaves in the discriminator: another optimizer's step used that backward. SAM moves
    the weights with the first gradient, gradient surgery writes `.grad` itself, attacks want the gradient of the input: each
    leaves a fact that tells it apart, and the rule is silent.
"""

from statistics import median

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import number, percent


@cause_rule(
    "stall/accumulated-gradients-discarded", explains=("stall/flat-loss", "stall/uniform-predictions"),
    settled_by=("clear-only-after-step",), masks=("stall/inputs-and-targets-misaligned",),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    for optimizer in chart.optimizers.values():
        rows = [row for row in optimizer.recent if row["watched"]]
        losing = [row for row in rows if row["discarded"] and not row["surgery"]]
        windows = sum(row["watched"] for row in losing)
        if optimizer.windows < 3 or windows < 2 or optimizer.surgery > optimizer.watched / 10:
            continue
        per_window = optimizer.micro_batches
        lost = median(row["discarded"] / row["watched"] for row in [row for row in losing if row["n"] == row["watched"]] or losing)
        if lost < 0.5 or lost < 0.2 * per_window:
            continue
        main = chart.main_loss()
        whole, gone = round(per_window), round(lost)
        return Seen(
            title=f"{gone} of {whole} micro-batches are thrown away before each step",
            where=[
                Spot(optimizer.cleared_at, "clears gradients that no step has used") if optimizer.cleared_at else None,
                Spot(optimizer.step_at, "this step sees only the rest") if optimizer.step_at else None,
                Spot(main[0], "made here") if main else None,
            ],
            evidence=[
                f"{number(per_window)} backward passes per step, {number(lost)} of them lost: "
                f"{percent(min(1.0, lost / per_window))} of the work",
                f"seen in {windows:,} windows of {optimizer.kind}; no other optimizer used these gradients",
            ],
            severity="critical",
            step=3,
            statement="gradients are cleared between backward and step",
            advice=["Call `zero_grad` right after `step`, and nowhere else."],
            look_for="" if optimizer.cleared_at else "clear",
        )
    return None
