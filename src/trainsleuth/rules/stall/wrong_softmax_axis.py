"""Softmax runs over the samples of the batch instead of the classes.

What it detects
    What reaches NLL as log-probabilities is normalised over the batch: each class sums to one over the samples, the classes of a
    sample do not.
Why it matters
    Samples compete with each other for each class. The loss falls a little and means nothing; at inference, with one sample, every
    class has probability 1.
How it is confirmed
    By the values, in every look.
How to cure it
    `dim=-1` (or 1 for images): the axis of the classes.
When it is wrong
    Contrastive losses normalise both ways on purpose, over square matrices of similarities; those are left alone.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import number


@cause_rule(
    "stall/wrong-softmax-axis", settled_by=("softmax-over-classes",), explains=("stall/flat-loss", "stall/uniform-predictions"),
    masks=("stall/inputs-and-targets-misaligned",),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    for calls in chart.loss_calls.values():
        if calls.function != "nll_loss" or len(calls.samples) < 2:
            continue
        shape = calls.last["input_shape"]
        columns, rows = calls.numbers("column_lse_off"), calls.numbers("row_lse_off")
        if len(shape) != 2 or shape[0] == shape[1] or len(columns) < 2:
            continue
        if max(columns) > 1e-3 or min(rows) < 0.05:
            continue
        return Seen(
            title="softmax runs over the batch, not over the classes",
            where=[Spot(calls.at, "receives them here") if calls.at else None],
            evidence=[
                f"input {shape[0]} samples x {shape[1]} classes: the probabilities of a class sum to 1 over the samples (off by "
                f"{number(max(columns))}), those of a sample do not (log of the sum off by up to {number(max(rows))})"
            ],
            step=2,
            statement="the softmax before the loss has the wrong dim",
            advice=["Use dim=-1, the axis of the classes."],
            look_for="softmax",
        )
    return None
