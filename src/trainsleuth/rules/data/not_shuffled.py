"""Training data come sorted by class.

What it detects
    Batches contain far fewer classes than chance would give them from the frequencies of all labels seen, and no shuffling loader
    feeds them.
Why it matters
    The model learns the class of the moment and forgets the last one; the loss looks excellent within a class and jumps at its end.
How it is confirmed
    By the labels of the batches; the trial `shuffle` changes the order alone.
How to cure it
    `shuffle=True`, or shuffle before batching.
When it is wrong
    Tasks that come one after another on purpose use a shuffling loader per task, or cut their batches by hand and learn: that is a note. So
    are batch samplers of the program's own that put alike samples together (by length), where the loss has halved.
    Labels per pixel or per token hang together.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.standing import label_counts, standing
from trainsleuth.rules.wording import number

LOOKS = 5
IN_ORDER, ITERATED = "SequentialSampler", "_InfiniteConstantSampler"
WORDS = {IN_ORDER: "does not shuffle", ITERATED: "gives the samples in the order in which the data set is iterated"}


@cause_rule("data/not-shuffled", explains=("stall/flat-loss",), settled_by=("shuffle",), structural=False,
            masks=("stall/inputs-and-targets-misaligned", "stall/dead-units"))  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    for calls in chart.loss_calls.values():
        if calls.function not in ("cross_entropy", "nll_loss") or not calls.samples or len(calls.last["target_shape"]) != 1:
            continue
        counts = label_counts(calls)
        present = [n for n in counts if n]
        if len(present) < 3:
            continue
        samples = [s["histogram"] for s in calls.samples if s.get("histogram") and sum(s["histogram"]) >= 4]
        if len(samples) < LOOKS:
            return Missing(f"{LOOKS} looks at the labels of a batch")
        trained_from = {loader for model in chart.models.values() for (_, grad, loader) in model.calls if grad}
        seen = [loader for loader in chart.loaders.values() if loader.passes and (loader.id in trained_from or None in trained_from)]
        shuffling = [loader for loader in seen if loader.about["sampler"] == "RandomSampler"]
        if shuffling:
            continue
        total = sum(counts)
        observed = sum(sum(1 for n in histogram if n) for histogram in samples) / len(samples)
        expected = sum(sum(1 - (1 - n / total) ** sum(histogram) for n in counts) for histogram in samples) / len(samples)
        if observed > 0.5 * expected:
            continue
        now = standing(chart)
        on_purpose = not seen and (isinstance(now, str) or not now.stuck)  # batches cut by hand, and it learns: one task after another
        grouped = any(loader.about.get("batch_sampler") not in (None, "NoneType", "BatchSampler") for loader in seen)
        on_purpose = on_purpose or (grouped and _learns(chart))  # samples of one kind to a batch, and the batches in any order
        loaders = [loader for loader in chart.loaders.values() if loader.at and loader.about["sampler"] in (IN_ORDER, ITERATED)]
        largest = sorted(loaders, key=lambda loader: (loader.id not in trained_from, -sum(p["batches"] for p in loader.passes)))
        return Seen(
            title=f"the data come sorted: {number(observed)} classes per batch where shuffling would give {number(expected)}",
            where=[
                *[Spot(at, "gives the order", function=True) for loader in largest[:1] if (at := place(loader.about.get("ordered_at")))],
                *[Spot(loader.at, WORDS[loader.about["sampler"]]) for loader in largest[:1] if loader.at],
                Spot(calls.at, "labels seen here") if calls.at else None,
            ],
            evidence=[f"{len(samples)} batches looked at over {chart.windows:,} windows, {len(present)} classes seen in them"],
            severity="note" if on_purpose else "warning",
            step=chart.windows,
            statement="the training data are not shuffled",
            advice=["Let the loader shuffle (shuffle=True, or a sampler that does), or shuffle before you cut batches."],
        )
    return None


def _learns(chart: ProcessChart) -> bool:
    """Whether the loss has halved, and is not above that in its last fifth at any time."""
    main = chart.main_loss()
    if main is None or not main[1].points:
        return False
    first, last = main[1].between(0.0, 0.05)[0], [point.mean for point in main[1].points if point.to > 0.8 * main[1].count]
    return bool(last) and max(last) < 0.5 * first
