"""Labels that the loss cannot use.

What it detects
    A class loss that raised because a label is not below the number of classes; targets of BCE outside 0 to 1; a batch all of
    whose labels equal `ignore_index`, look after look.
Why it matters
    On a CPU it raises; on a GPU it is a device-side assert long after the fact; with `ignore_index` or BCE it is silent.
How it is confirmed
    By the range of the labels.
How to cure it
    Count the classes again: labels 1 to C need C + 1 outputs or a subtraction; masks of 0 to 255 need a division.
When it is wrong
    Soft targets between 0 and 1 are fine. `ignore_index` for padding is fine as long as something is left.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import LossCalls, place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import number, percent


@cause_rule(
    "data/labels-out-of-range", settled_by=("bad-labels-dropped", "labels-minus-1"),
    explains=("crash/exception", "stall/flat-loss", "nan/loss-not-finite"),
    masks=("data/labels-one-hot", "stall/inputs-and-targets-misaligned", "data/labels-constant", "crash/known"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    crash = chart.crash
    if crash is not None and (labels := crash.get("labels")) and labels["function"] in ("cross_entropy", "nll_loss"):
        classes, least, most = labels["classes"], int(labels["least"]), int(labels["most"])
        if most >= classes or least < 0:
            frames = [place(frame) for frame in crash["frames"]]
            off_by_one = least >= 1 and most == classes
            return Seen(
                title=f"label {most if most >= classes else least} does not exist: the model has {classes} classes, 0 to {classes - 1}",
                where=[Spot(frames[-1], "the loss was given these labels") if frames and frames[-1] else None],
                evidence=[
                    f"labels of the failing batch run from {least} to {most}, the output has {classes} columns",
                    *(["they look as if they were counted from 1"] if off_by_one else []),
                ],
                step=chart.windows + 1,
                statement="labels are counted from 1, or the head has too few outputs"
                if off_by_one
                else "labels and head do not agree",
                advice=[f"Subtract 1 from the labels, or give the head {most + 1} outputs."],
            )
    for calls in chart.loss_calls.values():
        if not calls.samples:
            continue
        if calls.function.startswith("binary_cross_entropy"):
            highest, lowest = max(calls.numbers("target_most"), default=1.0), min(calls.numbers("target_least"), default=0.0)
            if highest > 1 + 1e-3 or lowest < -1e-3:
                signs = _are_signs(calls)
                return Seen(
                    title=f"targets of {calls.function} run from {number(lowest)} to {number(highest)}; they must lie between 0 and 1",
                    where=[Spot(calls.at, "receives these targets") if calls.at else None],
                    evidence=[
                        f"range over {len(calls.samples)} looks: {number(lowest)} to {number(highest)}",
                        *(["they are -1 or 1, and nothing in between"] if signs else []),
                    ],
                    step=1,
                    statement="the targets are not probabilities",
                    advice=["Encode no and yes as 0 and 1: (target + 1) / 2." if signs else "Divide masks of 0 to 255 by 255, or compare with > 0."],
                )
        ignored = calls.numbers("ignored")
        index, classes = calls.last["settings"].get("ignore_index"), calls.last.get("classes")
        if len(ignored) >= 3 and isinstance(index, int) and classes and 0 <= index < classes and 0.02 < max(ignored) < 0.999:
            return Seen(
                title=f"labels that equal {index} give no loss: ignore_index={index} is also a class of this model",
                where=[Spot(calls.at, "ignores them") if calls.at else None],
                evidence=[
                    f"{percent(sum(ignored) / len(ignored))} of the labels are {index}; the model has an output for it that is never the right answer"
                ],
                severity="note",
                step=3,
                statement="a class may be ignored by mistake",
                advice=[f"If {index} is padding, all is well. If it is a class, leave ignore_index at its default."],
                certain=False,
            )
        if len(ignored) >= 3 and min(ignored) > 0.999:
            index = calls.last["settings"].get("ignore_index")
            return Seen(
                title=f"every label equals ignore_index ({index}): there is nothing to learn from",
                where=[Spot(calls.at, "receives these labels") if calls.at else None],
                evidence=[f"{percent(min(ignored))} of the labels in {len(ignored)} looks are ignored"],
                step=3,
                statement="all labels are ignored",
                advice=["Check how labels are encoded, and ignore_index."],
            )
    return None


def _are_signs(calls: LossCalls) -> bool:
    """Whether all targets are -1 or 1: their mean square is 1, and so is their largest size."""
    ends = [*calls.numbers("target_least"), *calls.numbers("target_most")]
    squares = [spread**2 + mean**2 for spread, mean in zip(calls.numbers("target_spread"), calls.numbers("target_mean"))]
    return bool(ends) and max(map(abs, ends)) == 1 and all(abs(square - 1) < 0.05 for square in squares)
