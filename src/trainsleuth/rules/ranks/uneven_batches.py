"""The ranks have different numbers of batches.

What it detects
    DDP averages gradients in each backward of all ranks. The loaders of the ranks gave different numbers of batches in a pass, or
    are made for different numbers, and the ranks stand still or failed with different numbers of backwards. Without loaders: one rank
    waits behind the loop in which another still computes gradients.
Why it matters
    The rank with more batches waits in backward for a partner that has none left.
How it is confirmed
    By the number of batches and of backwards of each rank.
How to cure it
    Use a `DistributedSampler` (it pads, or drops with `drop_last=True`), or wrap the loop in `with model.join():`.
When it is wrong
    With `join()`, or where each rank is meant to run for itself, nothing stands still, and nothing is said.
"""

from trainsleuth.case.entries import Place
from trainsleuth.case.run_chart import RunChart
from trainsleuth.case.standstill import Standstill
from trainsleuth.rules.kinds import Seen, Spot, Verdict, run_rule
from trainsleuth.rules.locate import behind_the_loop, where_a_loop_is_left
from trainsleuth.rules.side_by_side import ABOUT_RANKS, Rank, ranks_of, table
from trainsleuth.rules.still import duration


@run_rule(
    "ranks/uneven-batches", explains=ABOUT_RANKS, settled_by=("ranks-do-not-wait",),
    masks=("ranks/collective-missing", "ranks/collective-mismatch", "hang/python-lock", "hang/queue-nobody-feeds", "hang/input-blocked"),
)  # fmt: skip
def rule(run: RunChart) -> Verdict:
    still, ranks = run.standstill(), ranks_of(run)
    failed = [rank for rank in ranks if rank.chart.crash is not None]
    if len(ranks) < 2 or (still is None and not failed):
        return None
    batches = {rank.number: _batches(rank) for rank in ranks}
    known = {number: count for number, count in batches.items() if count}
    if not known and (seen := _done_early(still, ranks)) is not None:
        return seen
    if len(set(known.values())) < 2 or (
        len({rank.backwards for rank in ranks}) < 2 and not any(rank.in_backward for rank in ranks)
    ):
        return None
    most = max((rank for rank in ranks if rank.number in known), key=lambda rank: known[rank.number])
    loader = _trained_from(most)
    stood = f", and all stand still for {duration(still)}" if still is not None else ""
    return Seen(
        title=f"the ranks have {', '.join(str(count) for count in sorted(set(known.values())))} batches each pass{stood}",
        where=[
            Spot(loader, "this loader has another length on each rank") if loader else None,
            Spot(at, f"rank {most.number} waits here{' in backward' if most.in_backward else ''}") if (at := most.line()) else None,
        ],
        evidence=[*(f"rank {number}  {count} batches a pass" for number, count in list(known.items())[:8]), *table(ranks)],
        statement="the ranks' loaders are of different length",
        advice=["Use a DistributedSampler, which gives every rank the same number, or wrap the loop in `with model.join():`."],
        step=most.chart.windows or None,
    )


def _done_early(still: Standstill | None, ranks: list[Rank]) -> Seen | None:
    """Without loaders: one rank waits behind the loop in which another still computes gradients."""
    for busy in (rank for rank in ranks if rank.in_backward and still is not None):
        for done in (rank for rank in ranks if rank.backwards < busy.backwards or rank.waits_in() is not None):
            entered, at = done.waits_in(), busy.line()
            if done is busy or entered is None or entered.at is None or at is None or still is None:
                continue
            loop = behind_the_loop(at, entered.at)
            if loop is None or where_a_loop_is_left(at, entered.at) is not None:
                continue
            return Seen(
                title=f"rank {done.number} is done with its loop over batches, and rank {busy.number} is not: all stand still for {duration(still)}",
                where=[
                    Spot(at, f"rank {busy.number} waits here in backward"),
                    Spot(at._replace(line=loop), "this loop is not equally long on all ranks"),
                    Spot(entered.at, f"rank {done.number} waits here, behind the loop"),
                ],
                evidence=table(ranks),
                statement="the ranks do not have the same number of batches, or one of them leaves the loop alone",
                advice=["Cut every rank to the shortest share (an all_reduce with MIN), or wrap the loop in `with model.join():`; a break is "
                        "decided together."],
                step=busy.chart.windows or None,
            )
    return None


def _batches(rank: Rank) -> int:
    """Batches a pass of the loader that is trained from: as its first pass gave, else as its length says."""
    for loader in rank.chart.loaders.values():
        passes = [row["batches"] for row in loader.passes if row["batches"] and row["backwards"]]
        if passes:
            return int(passes[0])
    for loader in rank.chart.loaders.values():
        length, size = loader.about.get("length"), loader.about.get("batch_size")
        if length and size and loader.about.get("sampler") != "DistributedSampler":
            return -(-int(length) // int(size)) if not loader.about.get("drop_last") else int(length) // int(size)
    return 0


def _trained_from(rank: Rank) -> Place | None:
    return next((loader.at for loader in rank.chart.loaders.values() if loader.at), None)
