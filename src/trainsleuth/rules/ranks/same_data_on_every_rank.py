"""Every rank trains on the same batches.

What it detects
    Gradients are averaged over the ranks, and the loss of the first steps looked at is the same on all ranks to the last digit,
    with the same labels.
Why it matters
    Two ranks do the work of one. The effective batch is not the one that the learning rate was chosen for.
How it is confirmed
    By the losses and the labels that each rank records in the same windows.
How to cure it
    Give the loader a `DistributedSampler`, or seed the shuffling differently on each rank.
When it is wrong
    Tensor-parallel ranks see the same batch on purpose; they do not average gradients through DDP.
"""

from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules.kinds import Seen, Spot, Verdict, run_rule
from trainsleuth.rules.side_by_side import Rank, ranks_of

ENOUGH = 5


@run_rule("ranks/same-data-on-every-rank", explains=(), settled_by=("own-share",))
def rule(run: RunChart) -> Verdict:
    ranks = ranks_of(run)
    if len(ranks) < 2 or not all(rank.chart.ddp or rank.collectives >= rank.chart.windows > 0 for rank in ranks):
        return None
    losses = [_losses(rank) for rank in ranks]
    shared = set(losses[0]).intersection(*losses[1:])
    equal = [key for key in sorted(shared) if all(losses[0][key] == other[key] for other in losses[1:])]
    if len(equal) < ENOUGH or equal[:ENOUGH] != sorted(shared)[:ENOUGH]:
        return None
    if len({losses[0][key] for key in equal}) < ENOUGH:  # a loss that never changes is equal everywhere
        return None
    loader = next((known for known in ranks[0].chart.loaders.values() if (known.at and known.passes) or known.at), None)
    call = ranks[0].chart.main_loss_call()
    return Seen(
        title=f"all {len(ranks)} ranks train on the same batches",
        where=[
            Spot(loader.at, f"a {loader.about.get('sampler')}, the same on every rank")
            if loader is not None and loader.at
            else None,
            Spot(call.at, "the same loss on every rank") if call is not None and call.at else None,
        ],
        evidence=[
            f"the loss was equal on all ranks to the last digit in {len(equal)} of {len(shared)} windows looked at on all of them,"
            f" and in all of the first {ENOUGH}"
        ],
        severity="warning",
        statement="the data is not divided among the ranks",
        advice=["Give the loader a DistributedSampler (and call its set_epoch), or divide the data by rank."],
        step=equal[ENOUGH - 1][0],
    )


def _losses(rank: Rank) -> dict[tuple[int, str, str], tuple[float, ...]]:
    """Window and call to loss and labels."""
    found = {}
    for calls in rank.chart.loss_calls.values():
        for sample in calls.samples:
            value = sample["numbers"].get("value")
            if isinstance(value, (int, float)):
                key = (int(sample["window"]), calls.function, str(calls.at))
                found[key] = (value, *sample.get("histogram", []))
    return found
