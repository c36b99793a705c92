"""The scale of the loss falls and falls, until gradients vanish.

What it detects
    The scaler's scale fell below 1 and is still falling, or it fell a hundredfold and gradients of float16 now vanish. Steps are
    made in between, so it is not that every step is skipped.
Why it matters
    Each gradient that is Inf or NaN halves the scale, and 2,000 clean steps double it. A batch in twenty that always overflows drives the
    scale to zero; then the small gradients of all batches are lost.
How it is confirmed
    By the scale in the windows looked at, the skipped steps, and the gradients.
How to cure it
    Find what overflows: a batch, a layer, a term of the loss. Compute it in 32 bit, or drop the batch before `scaler.step`.
When it is wrong
    A scale that starts too high falls for a while and then stays. Huge losses need a small scale: if it stays and nothing vanishes, the
    rule is silent.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.halves import in_float16, vanishing
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.origins import origin_of
from trainsleuth.rules.wording import count, number

FELL = 100
ENOUGH_WINDOWS = 30


@cause_rule(
    "precision/scale-collapsed", settled_by=("precision-32",), explains=("stall/flat-loss", "stall/uniform-predictions", "nan/loss-not-finite"),
    masks=("precision/gradient-underflow", "stall/vanishing-gradient", "stall/dead-units", "stall/inputs-and-targets-misaligned"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    if not chart.scales or not chart.scalers or not chart.skips:
        return None
    scales = sorted([*chart.scales, *((fact["window"], fact["scale"]) for fact in chart.skips if fact.get("scale") is not None)])
    first, (window, last) = float(chart.scalers[0]["scale"]), scales[-1]
    if window < ENOUGH_WINDOWS:
        return Missing("thirty windows with a scaler")
    if last * FELL > first:
        return None
    halfway = next((scale for at, scale in reversed(scales) if at <= window / 2), first)
    falling = last < 1 and last <= halfway / 16
    found = vanishing(chart, in_float16(chart)[-2:])
    gone = found.struck == 2
    if not falling and not gone:
        return None
    skipped = sum(optimizer.skipped for optimizer in chart.optimizers.values())
    at, made, origin = place(chart.skips[-1]["at"]), place(chart.scalers[0]["at"]), origin_of(chart)
    return Seen(
        title=f"the scale of the loss fell from {number(first)} to {number(last)}" + (", and gradients vanish" if gone else ""),
        where=[
            Spot(origin.at, "overflows here") if origin is not None and origin.at else None,
            Spot(at, "steps are skipped here, and each skip halves the scale") if at else None,
            made,
        ],
        evidence=[
            f"{skipped:,} of {count(chart.windows, 'step')} were skipped because a gradient was Inf or NaN",
            f"scale {number(first)} at the start, {number(halfway)} halfway, {number(last)} in window {window:,}",
            *(found.evidence() if gone else []),
        ],
        severity="critical" if gone or origin is not None else "warning",
        step=window,
        statement="gradients are Inf or NaN again and again, so that the scale never recovers",
        advice=[
            "Find the batch, layer or term that overflows in float16 and compute it in 32 bit; `scaler.get_scale()` should stay above 1."
        ],
        certain=False,
    )
