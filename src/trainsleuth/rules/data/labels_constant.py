"""All labels are the same.

What it detects
    Over a whole pass (or fifty windows) and at least 64 labels only one class occurs, the model has several, and it predicts that
    class always.
Why it matters
    The loss falls to zero at once and looks wonderful; the model is useless.
How it is confirmed
    By the histogram of the labels at the loss call.
How to cure it
    Look at the line that makes the labels: an index that is not used, a broadcast, a default value.
When it is wrong
    Contrastive losses put the right answer at index 0 for every row; they do not become perfect at once. The rule asks for both.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.standing import label_counts
from trainsleuth.rules.wording import number


@cause_rule("data/labels-constant", explains=("stall/flat-loss",), structural=False,
            masks=("stall/input-ignored", "stall/inputs-and-targets-misaligned", "stall/dead-units"))  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    return _classes(chart) or _binary(chart)


def _binary(chart: ProcessChart) -> Verdict:
    """BCE whose targets are one value at every call site; a GAN's discriminator sees both."""
    binary = [calls for calls in chart.loss_calls.values() if calls.function.startswith("binary_cross_entropy") and calls.samples]
    values = {v for calls in binary for key in ("target_least", "target_most") for v in calls.numbers(key)}
    values.update(*(calls.other_targets for calls in binary))
    if len(values) != 1 or values - {0.0, 1.0}:
        return None
    if not (chart.windows >= 50 or chart.ended) or sum(len(calls.samples) for calls in binary) < 5:
        return Missing("fifty windows with one target value only")
    right = binary[0].numbers("accuracy_at_half")
    if binary[0].function.endswith("logits") and (not right or right[-1] < 0.999):
        return None
    value, main = values.pop(), chart.main_loss()
    return Seen(
        title=f"every target is {value:g}: the model only learns to say so",
        where=[Spot(binary[0].at, "receives these targets") if binary[0].at else None],
        evidence=[
            f"{len(binary[0].samples)} looks at the targets, all {value:g}",
            *([f"loss {number(main[1].first)} → {number(main[1].last)}"] if main else []),
        ],
        step=chart.windows,
        statement="the targets never vary",
        advice=["Print the targets of a batch, and look at the line that makes them."],
    )


def _classes(chart: ProcessChart) -> Verdict:
    for calls in chart.loss_calls.values():
        if calls.function not in ("cross_entropy", "nll_loss") or not calls.samples:
            continue
        counts = label_counts(calls)
        present = [index for index, n in enumerate(counts) if n]
        if len(counts) < 2 or len(present) != 1 or calls.other_targets - {present[0], calls.last["settings"].get("ignore_index")}:
            continue
        passed = any(len(loader.passes) for loader in chart.loaders.values())
        if sum(counts) < 64 or len(calls.samples) < 8 or not (passed or chart.windows >= 50 or chart.ended):
            return Missing("a whole pass over the data with one label only")
        accuracy = calls.numbers("accuracy")
        if not accuracy or min(accuracy[-2:]) < 0.999:
            continue
        main = chart.main_loss()
        return Seen(
            title=f"every label is {present[0]}: the model only learns to say so",
            where=[
                Spot(calls.at, "receives these labels") if calls.at else None,
                *[Spot(loader.at, "the data come from here") for loader in chart.loaders.values() if loader.at][:1],
            ],
            evidence=[
                f"{int(sum(counts)):,} labels looked at, all {present[0]}, for a model with {len(counts)} outputs",
                *([f"loss {number(main[1].first)} → {number(main[1].last)}, accuracy {number(accuracy[-1])}"] if main else []),
            ],
            step=chart.windows,
            statement="the labels never vary",
            advice=["Print the labels of a batch, and look at the line that makes them."],
        )
    return None
