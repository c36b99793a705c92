"""DDP waits for gradients of parameters that took no part in the loss.

What it detects
    The reducer's own error about parameters that were not used, or a standstill in backward with a parameter that got no gradient on
    one rank.
Why it matters
    DDP reduces gradients in buckets, and a bucket is ready when all its parameters have one. One that never gets one holds it up.
How it is confirmed
    By the message, and by which parameters had no gradient in the windows that were looked at.
How to cure it
    Use the parameters in every forward, leave them out (freeze or remove them), or `DistributedDataParallel(…, find_unused_parameters=True)`,
    which costs a walk through the graph each step.
When it is wrong
    Never: torch itself says so.
"""

from trainsleuth.case.entries import place
from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules.kinds import Seen, Spot, Verdict, run_rule
from trainsleuth.rules.side_by_side import ABOUT_RANKS, Rank, ranks_of, table
from trainsleuth.rules.wording import names

MESSAGE = "Expected to have finished reduction in the prior iteration"


@run_rule("ranks/unused-parameters", explains=ABOUT_RANKS, masks=(
    "ranks/collective-missing", "ranks/collective-mismatch", "ranks/uneven-batches", "hang/python-lock", "hang/queue-nobody-feeds"))  # fmt: skip
def rule(run: RunChart) -> Verdict:
    for rank in ranks_of(run):
        crash = rank.chart.crash
        if crash is None or MESSAGE not in crash["message"]:
            continue
        frames = [at for frame in reversed(crash["frames"]) if (at := place(frame))]
        made = next((at for fact in rank.chart.ddp if (at := place(fact["at"]))), None)
        silent = [p for p in rank.chart.parameters.values() if p.looks and p.without_gradient and p.name != "?"]
        return Seen(
            title="DDP waits for gradients of parameters that took no part in the loss",
            where=[
                Spot(made, "wrapped here, without find_unused_parameters") if made else None,
                *(Spot(at, "the forward that torch refused") for at in frames[:1]),
            ],
            evidence=[
                f"rank {rank.number}: {crash['message'].strip().splitlines()[0][:140]}",
                *([f"without a gradient in some window: {names(silent)}"] if silent else []),
            ],
            statement="some parameters are not used in every forward",
            advice=["Use them in every step, freeze them, or give DistributedDataParallel find_unused_parameters=True."],
            step=rank.chart.windows,
            rank=rank.number,
        )
    return _ran_ahead(run)


def _ran_ahead(run: RunChart) -> Verdict:
    """In DDP a backward ends on all ranks or on none. One that ended here and not there had no gradients to wait with."""
    still, ranks = run.standstill(), ranks_of(run)
    if still is None or not all(rank.chart.ddp for rank in ranks):
        return None
    waiting = [rank for rank in ranks if rank.in_backward]
    ahead = [
        rank
        for rank in ranks
        if rank.seen is not None and not rank.in_backward and waiting and rank.backwards > waiting[0].backwards
    ]
    if not ahead or _called_more(ahead[0], waiting[0]):
        return None
    made = next((at for fact in ahead[0].chart.ddp if (at := place(fact["at"]))), None)
    return Seen(
        title=f"rank {waiting[0].number} waits in backward for gradients that rank {ahead[0].number} does not have",
        where=[
            Spot(made, "wrapped here, without find_unused_parameters") if made else None,
            Spot(at, f"rank {waiting[0].number} waits here") if (at := waiting[0].line()) else None,
            Spot(at, f"rank {ahead[0].number} is here") if (at := ahead[0].line()) else None,
        ],
        evidence=[f"rank {ahead[0].number} ended backward {ahead[0].backwards} without the others", *table(ranks)],
        statement="on one rank some parameters took no part in the loss",
        advice=["Use them in every step, freeze them, or give DistributedDataParallel find_unused_parameters=True."],
        step=waiting[0].chart.windows or None,
        rank=ahead[0].number,
    )


def _called_more(ahead: Rank, waiting: Rank) -> bool:
    """Whether the rank that is ahead stands in a collective of the program's own that the other has not entered, and no parameter of it was
    ever seen without a gradient: then the calls do not fit together, and backward only paired up with the wrong one."""
    if ahead.seen is not None and waiting.seen is not None and 0 < ahead.seen.native <= waiting.seen.native:
        return False  # its latest backward has started nothing that the others could join
    called = ahead.waits_in()
    silent = any(p.without_gradient for p in ahead.chart.parameters.values() if p.trainable and p.looks)
    return called is not None and called.count > waiting.collectives and not silent
