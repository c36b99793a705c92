"""Gradients flow in float16, and nothing scales the loss.

What it detects
    In the backwards looked at, gradients pass through float16 (autocast), the weights are of 32 bit, and no loss was ever scaled.
    It is a note as long as nothing is lost, a warning when gradients vanish, critical when those of most weights do.
Why it matters
    The smallest number of float16 is 6e-8. Smaller gradients become zero without a word, and the layers that they belong to stop.
How it is confirmed
    By the gradients themselves: what is too small at a cast from 32 bit is added up, and elsewhere what is left crowds on the lowest
    steps of float16. Zeros alone, which a ReLU gives too, do not count.
How to cure it
    `scaler = torch.amp.GradScaler(device)`, then `scaler.scale(loss).backward()`, `scaler.step(optimizer)`, `scaler.update()`; or
    bfloat16, which has the range of 32 bit.
When it is wrong
    bfloat16 needs no scaler and is not looked at. A loss that is multiplied by hand keeps its gradients; that is a note at most.
"""

from trainsleuth.case.chart import ProcessChart, place
from trainsleuth.rules.halves import ENOUGH_LOOKS, in_float16, vanishing
from trainsleuth.rules.kinds import Missing, Seen, Severity, Spot, Verdict, cause_rule


@cause_rule(
    "precision/no-grad-scaler", explains=("stall/flat-loss", "stall/uniform-predictions"), settled_by=("scaler-on",),
    masks=("precision/gradient-underflow", "stall/vanishing-gradient", "stall/dead-units", "stall/inputs-and-targets-misaligned",
           "stall/input-ignored"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    looks = in_float16(chart)
    if not looks or chart.scales or any(fact["scaled"] for fact in chart.half_gradients):
        return None
    if any(known.dtype == "float16" for known in chart.half_parameters.values()):
        return None  # a scaler refuses gradients of 16 bit
    if not chart.windows:
        return None
    if len(looks) < ENOUGH_LOOKS:
        return Missing("three backwards with gradients of 16 bit")
    found = vanishing(chart, looks)
    severity: Severity = "critical" if found.grave else "warning" if found.lasting else "note"
    at = place(looks[-1]["at"])
    off = [Spot(made, "this scaler is switched off") for fact in chart.scalers_off[:1] if (made := place(fact["at"]))]
    return Seen(
        title="gradients flow in float16, and no scaler keeps the small ones from vanishing"
        if found.lasting
        else "gradients flow in float16 without a scaler; so far none vanish",
        where=[Spot(at, "the loss is not scaled here") if at else None, *off],
        evidence=[
            f"{looks[-1]['nodes']['float16']} operations of the graph pass gradients in float16, and no loss was scaled",
            *(found.evidence() if found.struck else []),
        ],
        severity=severity,
        step=looks[ENOUGH_LOOKS - 1]["window"],
        statement="small gradients become zero in float16, because the loss is not scaled",
        advice=[
            "Make a `torch.amp.GradScaler` for the device, and use `scaler.scale(loss).backward()`, `scaler.step(optimizer)`, `scaler.update()`.",
            "Or use `dtype=torch.bfloat16`, which needs no scaler.",
        ],
    )
