"""The gradient scaler rejects every step.

What it detects
    The scaler found Inf or NaN among the gradients in all of the last thirty windows, or in all windows of the run if there
    were at least eight.
Why it matters
    A skipped step is silent. The loss stands still, and the scale falls towards zero.
How it is confirmed
    By the scaler's own count: no step reached the optimizer.
How to cure it
    Find the gradient that is not finite: half precision overflows at 65,504. Compute that part in 32 bit, or clip its input.
    If only the start is affected, lower `init_scale`.
When it is wrong
    A few skips at the start are how a scaler finds its scale; they end by themselves.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import number


@cause_rule(
    "stall/scaler-skips-steps", settled_by=("precision-32", "scaler-off"),
    explains=("stall/flat-loss", "stall/uniform-predictions", "nan/loss-not-finite"),
    masks=("stall/params-frozen", "stall/inputs-and-targets-misaligned", "stall/optimizer-never-steps", "precision/scale-collapsed",
           "precision/gradient-underflow"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    for optimizer in chart.optimizers.values():
        if optimizer.windows < 8 or not optimizer.skipped:
            continue
        looked = skipped = 0
        for row in reversed(optimizer.recent):
            looked, skipped = looked + row["n"], skipped + row["skipped"]
            if looked >= 30:
                break
        if skipped < looked or (looked < 30 and optimizer.steps):
            continue
        scales = [fact["scale"] for fact in chart.skips if isinstance(fact.get("scale"), (int, float))]
        at = place(chart.skips[-1]["at"]) if chart.skips else None
        return Seen(
            title=f"the gradient scaler skipped the last {skipped:,} steps",
            where=[Spot(at, "skipped here") if at else None, *[place(s["at"]) for s in chart.scalers[:1]]],
            evidence=[
                f"{optimizer.skipped:,} of {optimizer.windows:,} steps were skipped because a gradient was Inf or NaN",
                *([f"the scale fell from {number(scales[0])} to {number(scales[-1])}, and it did not help"] if scales else []),
            ],
            step=optimizer.windows,
            statement="a gradient is Inf or NaN in every window, so no step is ever made",
            advice=["Compute the part that overflows in 32 bit (half precision ends at 65,504), or lower `init_scale`."],
        )
    return None
