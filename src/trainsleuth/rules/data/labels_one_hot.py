"""One-hot labels that are read along the wrong axis.

What it detects
    A class loss that gets as many labels as there are classes instead of samples (an argmax over the batch), or class
    probabilities that do not sum to one for a sample. One-hot maps that are one-hot along the axis where `F.one_hot` puts the classes, and
    no longer along the one where the predictions have them: a `view` gave the axes another order and moved no number.
Why it matters
    The first raises a confusing message about batch sizes, or nothing when both sizes agree; the second trains towards nonsense.
How it is confirmed
    By the shapes and the sums.
How to cure it
    `one_hot.argmax(dim=1)`, or pass the one-hot rows as probabilities, or use BCE for several labels per sample.
When it is wrong
    Targets of (batch, steps, classes) with as many steps as classes look the same from both sides: nothing is said. Label smoothing and mixing
    keep the sum at one. Targets with several ones want BCE: that is worth knowing.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import number

EXACT = 1e-3


@cause_rule(
    "data/labels-one-hot", explains=("crash/exception", "stall/flat-loss"), masks=("stall/inputs-and-targets-misaligned", "crash/known")
)
def rule(chart: ProcessChart) -> Verdict:
    crash = chart.crash
    if crash is not None and (labels := crash.get("labels")):
        inputs, targets = labels["input_shape"], labels["target_shape"]
        if len(inputs) == 2 and targets == [inputs[1]] and inputs[0] != inputs[1]:
            frames = [place(frame) for frame in crash["frames"]]
            return Seen(
                title=f"{targets[0]} labels for {inputs[0]} samples: the argmax of the one-hot labels runs over the batch",
                where=[Spot(frames[-1], "the loss was given one label per class") if frames and frames[-1] else None],
                evidence=[f"output {tuple(inputs)}, labels {tuple(targets)}: one label per class, not per sample"],
                step=chart.windows + 1,
                statement="the labels were reduced along the wrong axis",
                advice=["Use argmax(dim=1)."],
                look_for="argmax",
            )
    for calls in chart.loss_calls.values():
        least, most, axis, last = (calls.numbers(key) for key in ("target_least", "target_most", "target_axis_sum_off", "target_last_sum_off"))
        sizes = calls.last["target_shape"]
        told_apart = len(sizes) > 2 and sizes[1] != sizes[-1]  # of as many steps as classes nobody can say which axis is which
        binary = {*least, *most} <= {0.0, 1.0}
        if told_apart and binary and len(last) >= 2 and len(last) == len(calls.samples) and max(last) < EXACT and min(axis) > 1 - EXACT:
            shape = tuple(calls.last["target_shape"])
            axes = len(shape)
            order = ", ".join(map(str, (0, axes - 1, *range(1, axes - 1))))
            return Seen(
                title="one-hot targets are scrambled: a view exchanged their axes and moved no number",
                where=[Spot(calls.at, f"receives these targets; `permute({order})` would move them") if calls.at else None],
                look_for="view",
                evidence=[
                    f"targets {shape}: over axis 1, where the predictions have their classes, they sum to anything but one",
                    f"read in runs of {shape[1]} numbers, as `one_hot` makes them, every sum is one ({len(last)} of {len(last)} looks)",
                ],
                step=2,
                statement="the targets are one-hot along the last axis and were viewed, not permuted, into another order",
                advice=[f"Use permute({order}) where a view or reshape stands."],
            )
        if calls.function != "cross_entropy" or not calls.samples or calls.last.get("target_kind") != "probabilities":
            continue
        off = calls.numbers("target_row_sum_off")
        if len(off) >= 2 and min(off) > 0.05:
            return Seen(
                title="class probabilities do not sum to one for a sample",
                where=[Spot(calls.at, "receives these targets") if calls.at else None],
                evidence=[
                    f"targets {tuple(calls.last['target_shape'])}: the sum over the classes is off by up to {number(max(off))}"
                ],
                severity="warning",
                step=2,
                statement="the targets are one-hot along another axis, or have several ones",
                advice=["Put the classes on axis 1; for several labels per sample use binary_cross_entropy_with_logits."],
            )
    return None
