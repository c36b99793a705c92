"""Softmax runs over the wrong axis: over the samples of the batch or the steps of a sequence instead of the classes, or over one element.

What it detects
    What reaches NLL as log-probabilities is normalised over the batch: each class sums to one over the samples, the classes of a
    sample do not. Or they come from a log-softmax over another axis (the steps of a sequence, say), and the classes of a sample do not
    sum to one. Or a softmax inside the model runs over an axis of length 1, as `dim=-1` does for scores of shape (B, T, 1). Or it runs over
    one axis, and a matrix product then sums its weights over the last one: attention over the heads, the queries or the batch.
Why it matters
    Samples compete with each other for each class. The loss falls a little and means nothing; at inference, with one sample, every
    class has probability 1. Over one element every weight is 1, and what computes the scores gets a gradient of exactly zero. Weights that
    do not sum to one where they are summed weigh nothing, and over the batch one sample depends on the others.
How it is confirmed
    By the values, in every look; by the shape, in every deep window. Whether one element was meant, the trial settles.
How to cure it
    `dim=-1` (or 1 for images): the axis of the classes. For scores of shape (B, T, 1), `dim=1`.
When it is wrong
    Contrastive losses normalise both ways on purpose, over square matrices of similarities; those are left alone. Attention to a
    single token has one element by right: unless the loss stands still, that is a note. So are weights that are summed over another axis (a
    soft assignment may be meant), but for those over the batch.
"""

import math

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.case.reading import Fact
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.standing import standing
from trainsleuth.rules.wording import count, names, number

FAR_OFF = 0.2  # log of a sum that should be 1: further than rounding to 16 bit explains
SAME_NUMBERS = ("View", "UnsafeView", "ReshapeAlias", "Clone", "Transpose", "Permute", "Squeeze", "Unsqueeze", "TBackward")


@cause_rule(
    "stall/wrong-softmax-axis", settled_by=("softmax-over-classes",), explains=("stall/flat-loss", "stall/uniform-predictions"),
    masks=("stall/inputs-and-targets-misaligned",),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    return _over_the_batch(chart) or _over_another_axis(chart) or _over_one_element(chart) or _summed_over_another_axis(chart)


def _over_one_element(chart: ProcessChart) -> Verdict:
    looks = [fact.get("softmax_of_one") or [] for fact in chart.deep]
    starved = [p for p in chart.called_parameters() if p.trainable and p.looks >= 3 and p.zero_gradient == p.looks]
    if len(looks) < 2 or not all(looks) or not starved:
        return None
    row, shape, dim = looks[0][0]
    at = place(row)
    now = standing(chart)
    return Seen(
        title=f"softmax runs over an axis of one element: every weight is 1, and {count(starved, 'parameter')} get no gradient",
        where=[Spot(at, f"dim={dim} of shape ({', '.join(map(str, shape))}) has one element") if at else None],
        evidence=[
            f"in {len(looks)} of {len(looks)} looks; the softmax of one number is 1 whatever the number is",
            f"{names(starved)}: gradient of exactly 0 in {starved[0].looks} of {starved[0].looks} windows looked at",
        ],
        severity="note" if isinstance(now, str) or not now.stuck else "critical",
        step=3,
        statement="the softmax has the wrong dim, so that what it weighs is never weighed",
        advice=[f"Use the axis that is to be weighed, of ({', '.join(map(str, shape))}), as dim."],
        certain=False,
    )


def _summed_over_another_axis(chart: ProcessChart) -> Verdict:
    """The weights of an attention: what a matrix product sums over is not what the softmax runs over."""
    looks = [fact.get("not_summed") or [] for fact in chart.deep]
    if len(looks) < 2 or not all(looks):
        return None
    row, shape, axis = looks[-1][0]
    at, last, now = place(row), len(shape) - 1, standing(chart)
    calls = chart.main_loss_call()
    samples = axis == 0 and last > 1 and calls is not None and calls.last["input_shape"][:1] == shape[:1]
    stuck = not isinstance(now, str) and now.stuck
    over = f"axis {axis}{' (the batch)' if samples else ''} of shape ({', '.join(map(str, shape))})"
    return Seen(
        title=f"softmax runs over {over}, and its weights are then summed over axis {last}",
        where=[Spot(at, f"dim={axis}; its weights are summed over axis {last}") if at else None],
        evidence=[
            f"in {len(looks)} of {len(looks)} looks a matrix product sums over axis {last}, where these weights do not sum to 1",
            *(["one sample's weights depend on the other samples of its batch"] if samples else []),
        ],
        severity="critical" if stuck else "warning" if samples else "note",
        step=3,
        statement="the softmax has the wrong dim, so that the weights of a sum are no weights",
        advice=[f"Use dim={last} (-1), unless each of the {shape[axis]} entries of axis {axis} is meant to be shared out."],
        certain=False,
    )


def _over_another_axis(chart: ProcessChart) -> Verdict:
    for calls in chart.loss_calls.values():
        rows = calls.numbers("row_lse_off")
        if calls.function not in ("nll_loss", "ctc_loss") or len(rows) < 2 or min(rows) < FAR_OFF or not all(map(_from_log_softmax, calls.samples)):
            continue
        shape = calls.last["input_shape"]
        if len(shape) == 2 and shape[0] == shape[1]:
            continue  # similarities
        found = [row for fact in chart.deep for row in fact.get("log_softmaxes") or [] if math.prod(row[1]) == math.prod(shape)]
        axis = f"axis {found[-1][2]} of shape ({', '.join(map(str, found[-1][1]))})" if found else "another axis"
        at = place(found[-1][0]) if found else None
        classes = _axis_of_the_classes(found[-1][1], shape, calls.function) if found else None
        meant = "" if classes is None else f"; the classes are axis {classes}"
        return Seen(
            title=f"softmax runs over {axis}, not over the classes",
            where=[Spot(at, f"this softmax{meant}") if at else None, Spot(calls.at, "receives them here") if calls.at else None],
            evidence=[
                f"{len(rows)} looks: the probabilities of one prediction over its {calls.last['classes']} classes should sum to 1; the log of "
                f"their sum is off by {number(min(rows))} to {number(max(rows))}"
            ],
            step=2,
            statement="the softmax before the loss has the wrong dim",
            advice=[f"Use dim={-1 if classes is None else classes}, the axis of the classes."],
            look_for="" if found else "softmax",
        )
    return None


def _axis_of_the_classes(softmaxed: list[int], received: list[int], function: str) -> int | None:
    """Where the classes are in what the softmax was given: the loss takes axis 1 for them, or the last of a table; CTC always the last."""
    wanted = len(received) - 1 if function == "ctc_loss" or len(received) == 1 else 1
    if softmaxed == received:
        return wanted
    alike = [axis for axis, size in enumerate(softmaxed) if size == received[wanted]]
    return alike[0] if len(alike) == 1 else None


def _from_log_softmax(sample: Fact) -> bool:
    """Whether what the loss received is the output of a log-softmax, at most seen in another shape."""
    for name in sample.get("made_by") or []:
        if name.startswith("LogSoftmax"):
            return True
        if not name.startswith(SAME_NUMBERS):
            return False
    return False


def _over_the_batch(chart: ProcessChart) -> Verdict:
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
