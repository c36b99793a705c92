"""The output is the same whatever the input.

What it detects
    In the latest looks the predictions of a batch are equal to within rounding although the inputs differ. The deep window shows
    behind which module the difference between samples is lost.
Why it matters
    A model that does not see its input can only learn the frequencies of the targets.
How it is confirmed
    A trial that shuffles the inputs within the batch changes nothing in the loss (knob `inputs-turned-round`).
How to cure it
    Look at the module that is named: a mask of zeros, the wrong variable, a norm over one element, attention to padding only.
When it is wrong
    A head of zeros gives equal outputs at the very start; the rule looks at the latest windows.
"""

import math
from typing import Any

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import LossCalls, place
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import number

EQUAL = 1e-5


@cause_rule(
    "stall/input-ignored", explains=("stall/flat-loss", "stall/uniform-predictions"), settled_by=("inputs-turned-round",),
    structural=False, masks=("stall/inputs-and-targets-misaligned", "stall/no-gradient"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    calls = chart.main_loss_call()
    if calls is None or len(calls.samples) < 4:
        return Missing("four looks at a loss function that we know")
    alike = equal_predictions(calls)
    if alike is None:
        return None
    spread, size = alike
    lost = _where_lost(chart)
    if lost is None:
        return Missing("whether the inputs of the model differ between samples")
    inputs, row = lost
    at = place(row[4]) if row else None
    return Seen(
        title="the predictions are the same for every sample, whatever the input",
        where=[
            Spot(at, f"behind {row[2] or row[3]} all samples are equal") if at and row else None,
            Spot(calls.at, "equal predictions arrive here") if calls.at else None,
        ],
        evidence=[
            f"predictions of one batch differ by {number(spread)} at a size of {number(size)}; inputs differ by {number(inputs)}",
            *([f"first module whose output does not depend on the sample: {row[2] or row[3]}"] if row else []),
        ],
        step=chart.windows,
        statement="the model's output does not depend on its input",
        advice=["Look at what the named module receives: a mask of zeros, the wrong variable, a norm over a single element."],
        certain=False,
    )


def equal_predictions(calls: LossCalls) -> tuple[float, float] | None:
    """How far apart the predictions of a batch are, and their size, if they are the same for every sample in the latest looks."""
    classes = calls.last.get("target_kind") in ("index", "probabilities")
    spreads = calls.numbers("spread" if classes else "input_row_spread")[-3:]
    sizes = (
        calls.numbers("size")[-3:]
        if classes
        else [max(abs(a), abs(b)) for a, b in zip(calls.numbers("input_least")[-3:], calls.numbers("input_most")[-3:])]
    )
    if len(spreads) < 3 or len(sizes) < 3 or not all(map(math.isfinite, (*spreads, *sizes))):
        return None  # too few, or masked with infinity, as similarities are
    if any(spread > EQUAL * size for spread, size in zip(spreads, sizes)) or min(sizes) == 0:
        return None
    if not classes and min(calls.numbers("target_row_spread")[-3:] or [0]) == 0:
        return None
    return max(spreads), max(sizes)


def _where_lost(chart: ProcessChart) -> tuple[float, list[Any] | None] | None:
    """The spread of the model's input, and the first module call whose output has none; None if the inputs do not differ."""
    for fact in reversed(chart.deep):
        roots = [row for row in fact["calls"] if row[1] < 0 and row[9]]
        if not roots:
            continue
        for row in fact["calls"]:
            if row[13] is not None and row[12] and row[13] <= EQUAL * row[12] and not _children(fact["calls"], row[0]):
                return roots[0][9], row
        return roots[0][9], None
    return None


def _children(calls: list[list[Any]], order: int) -> bool:
    return any(row[1] == order for row in calls)
