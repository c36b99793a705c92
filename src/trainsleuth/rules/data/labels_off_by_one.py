"""Class 0 never occurs, all the others do: are the labels counted from 1?

What it detects
    Over at least twenty labels per class the lowest class never occurs and every other one does.
Why it matters
    An output that is never right wastes little; the real harm is where labels and class names are paired later, one off.
How it is confirmed
    Watching cannot settle it. The trial `labels-minus-1` would.
How to cure it
    Subtract 1, and drop the extra output.
When it is wrong
    Class 0 may be reserved (background, padding). It is a note.
"""

import math

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import LossCalls
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.standing import label_counts


@cause_rule("data/labels-off-by-one", settled_by=("labels-minus-1",), structural=False)
def rule(chart: ProcessChart) -> Verdict:
    for calls in chart.loss_calls.values():
        if calls.function not in ("cross_entropy", "nll_loss") or not calls.samples:
            continue
        mixed = _mixed(calls)
        if mixed is not None:
            return mixed
        counts = label_counts(calls)
        if len(counts) < 3 or counts[0] or calls.last["settings"].get("ignore_index") == 0:
            continue
        if sum(counts) < 20 * len(counts):
            return Missing("twenty labels per class")
        if not all(counts[1:]):
            continue
        return Seen(
            title=f"labels run from 1 to {len(counts) - 1}: class 0 of {len(counts)} never occurs",
            where=[Spot(calls.at, "receives these labels") if calls.at else None],
            evidence=[f"{int(sum(counts)):,} labels looked at: none is 0, each of 1 to {len(counts) - 1} occurs"],
            severity="note",
            step=chart.windows,
            statement="the labels may be counted from 1",
            advice=["If class 0 is not reserved, subtract 1 from the labels. The trial `labels-minus-1` would settle it."],
            certain=False,
        )
    return None


def _mixed(calls: LossCalls) -> Seen | None:
    """Some batches counted from 0 and others from 1: the lowest and the highest class avoid each other, no two others do."""
    batches = [
        s["histogram"] for s in calls.samples if s.get("histogram") and len(s["target_shape"]) == 1 and sum(s["histogram"]) >= 8
    ]
    if len(batches) < 6 or len(batches[0]) < 4:
        return None
    low, high = [b[0] > 0 for b in batches], [b[-1] > 0 for b in batches]
    if any(a and b for a, b in zip(low, high)) or sum(low) < 2 or sum(high) < 2:
        return None
    odds = [_log_odds_of_absences(batches, index) for index in range(len(batches[0]))]
    if max(odds[0], odds[-1]) > math.log(1e-6) or min(odds[1:-1]) < math.log(1e-3):
        return None
    return Seen(
        title=f"class 0 and class {len(batches[0]) - 1} never meet in a batch: some batches seem to count from 1",
        where=[Spot(calls.at, "receives these labels") if calls.at else None],
        evidence=[
            f"{len(batches)} batches looked at: class 0 in {sum(low)}, class {len(batches[0]) - 1} in {sum(high)}, both in none; "
            f"by chance that happens once in 10^{-(odds[0] + odds[-1]) / math.log(10):.0f} runs"
        ],
        severity="warning",
        step=len(batches),
        statement="part of the data is shifted by one class",
        advice=["Check the sources of the labels one by one. The trial `labels-minus-1` on a part of them would settle it."],
        certain=False,
    )


def _log_odds_of_absences(batches: list[list[float]], index: int) -> float:
    """How likely it is, as a logarithm, that a class is missing from the batches that it is missing from."""
    share = sum(b[index] for b in batches) / sum(sum(b) for b in batches)
    return sum(sum(b) * math.log1p(-share) for b in batches if not b[index]) if share < 1 else 0.0
