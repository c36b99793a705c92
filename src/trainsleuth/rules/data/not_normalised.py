"""Inputs are far larger than the layers expect.

What it detects
    The first layer with weights receives values of a mean size above 30, and the run shows it: the loss begins several times above
    the level of guessing, or stands still, or the predictions are the same for every sample.
Why it matters
    Initialisations assume inputs of size one. With 0 to 255, or raw amounts of money, the first outputs saturate and the first
    steps are violent.
How it is confirmed
    By the size of the input and the first value of the loss.
How to cure it
    Subtract the mean and divide by the standard deviation; divide pixels by 255; put a BatchNorm first.
When it is wrong
    Networks whose first layer is a norm, or that normalise inside, receive small values there: silent. Large inputs that do no harm
    are not mentioned.
"""

import math

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Place, place
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.stall.input_ignored import equal_predictions
from trainsleuth.rules.standing import standing
from trainsleuth.rules.wording import number

LARGE = 30.0
SATURATED = 0.97  # mean size of what a tanh gives


@cause_rule("data/not-normalised", settled_by=("normalise-inputs",), explains=("stall/flat-loss", "nan/loss-not-finite"), structural=False,
            masks=("stall/inputs-and-targets-misaligned", "stall/dead-units", "stall/input-ignored"))  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    sized = _first_layer(chart)
    if sized is None:
        return None
    size, path, at, root = sized
    if size < LARGE:
        return None
    calls, main = chart.main_loss_call(), chart.main_loss()
    if calls is None or main is None or not calls.samples:
        return Missing("a loss function that we know")
    first = (calls.numbers("value") or [math.nan])[0]
    now = standing(chart)
    stuck = not isinstance(now, str) and now.stuck
    if calls.last.get("classes") and calls.last.get("target_kind") == "index":
        violent = first > 3 * math.log(max(2, int(calls.last["classes"])))
        chance = math.log(max(2, int(calls.last["classes"])))
    elif calls.function == "mse_loss" and (spreads := calls.numbers("target_spread")):
        chance = spreads[0] ** 2 + abs(calls.numbers("target_mean")[0]) ** 2
        violent = first > 10 * chance > 0
    else:
        chance, violent = math.nan, first > 10 * math.log(2) and calls.function.startswith("binary")
    alike = equal_predictions(calls)
    saturated = _saturated(chart)
    if not (violent or stuck or main[1].not_finite or alike or saturated):
        return None
    return Seen(
        title=f"the inputs are not normalised: the first layer receives values of size {number(size)}",
        where=[Spot(at, "goes in here") if at else None, Spot(root, "the model is called here") if root else None],
        evidence=[
            f"mean size of the input of {path or 'the first layer'}: {number(size)}",
            f"first loss {number(first)}" + (f", where guessing gives {number(chance)}" if not math.isnan(chance) else ""),
            *(["the predictions are the same for every sample: behind the first layers nothing is left of what tells them apart"] if alike else []),
            *([f"{saturated[0]}: {saturated[1] * 100:.1f} % of full size in every look: its units are all on or off"] if saturated else []),
        ],
        severity="critical" if alike else "warning",
        step=1,
        statement="inputs of this size saturate the first layers and make the first steps violent",
        advice=["Subtract the mean and divide by the standard deviation, or divide pixels by 255."],
    )


def _saturated(chart: ProcessChart) -> tuple[str, float] | None:
    """The first tanh, where what it gives is nearly all at its ends in every look: its slope there is zero."""
    found: list[tuple[str, float]] = []
    for fact in chart.deep:
        sizes = [(str(row[2]), float(row[12])) for row in fact["calls"] if row[3] == "Tanh" and row[12] is not None]
        if not sizes or sizes[0][1] < SATURATED:
            return None
        found.append(sizes[0])
    return found[-1] if len(found) > 2 else None


def _first_layer(chart: ProcessChart) -> tuple[float, str, Place | None, Place | None] | None:
    """Size of what the first layer with weights receives, its path, where it is called, where the model is called."""
    for fact in chart.deep:
        for row in fact["calls"]:
            if row[1] >= 0 and row[8] is not None:
                if "Norm" in row[3] or "Embedding" in row[3]:
                    return None
                root = next((place(other[4]) for other in fact["calls"] if other[1] < 0), None)
                return row[8], row[2], place(row[4]), root
            if row[1] < 0 and row[8] is not None and row[3] in ("Linear", "Conv1d", "Conv2d", "Conv3d"):
                return row[8], row[2], place(row[4]), None
    return None
