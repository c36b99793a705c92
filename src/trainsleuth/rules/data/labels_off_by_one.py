"""Class 0 never occurs, all the others do: are the labels counted from 1?

What it detects
    Over at least twenty labels per class the lowest class never occurs and every other one does.
Why it matters
    An output that is never right wastes little; the real harm is where labels and class names are paired later, one off.
How it is confirmed
    Watching cannot settle it. The trial `labels-minus-one` would.
How to cure it
    Subtract 1, and drop the extra output.
When it is wrong
    Class 0 may be reserved (background, padding). It is a note.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.standing import label_counts


@cause_rule("data/labels-off-by-one", settled_by=("labels-minus-one",), structural=False)
def rule(chart: ProcessChart) -> Verdict:
    for calls in chart.loss_calls.values():
        if calls.function not in ("cross_entropy", "nll_loss") or not calls.samples:
            continue
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
            advice=["If class 0 is not reserved, subtract 1 from the labels. The trial `labels-minus-one` would settle it."],
            certain=False,
        )
    return None
