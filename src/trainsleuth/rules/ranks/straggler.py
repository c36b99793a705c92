"""One rank is slower than the others, and all wait for it.

What it detects
    One rank spends a large part of the run waiting for its data, clearly more than the others.
Why it matters
    All ranks meet in each step. The slowest sets the pace, and the others' devices stand idle meanwhile.
How it is confirmed
    By the time that each rank's loader kept it waiting.
How to cure it
    Divide the data so that each rank has as much work, give the loader workers, or look what is different on that machine.
When it is wrong
    A run that is short, or whose first pass fills a cache.
"""

from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules.kinds import Seen, Spot, Verdict, run_rule
from trainsleuth.rules.side_by_side import Rank, ranks_of
from trainsleuth.rules.wording import percent

TIMES = 1.4
SHARE = 0.2
SECONDS = 2.0


@run_rule("ranks/straggler", explains=())
def rule(run: RunChart) -> Verdict:
    ranks = ranks_of(run)
    waits = {rank.number: _waited(rank) for rank in ranks}
    if len(ranks) < 2 or not all(span > 0 for _, span in waits.values()):
        return None
    slowest = max(ranks, key=lambda rank: waits[rank.number][0])
    waited, span = waits[slowest.number]
    others = sorted(seconds for number, (seconds, _) in waits.items() if number != slowest.number)
    usual = others[len(others) // 2]
    if waited < SECONDS or waited - usual < SHARE * span or waited < TIMES * usual:
        return None
    loader = max(
        (known for known in slowest.chart.loaders.values() if known.passes),
        key=lambda known: sum(p["waited"] for p in known.passes),
    )
    return Seen(
        title=f"rank {slowest.number} is the slowest: it waits for data {percent(waited / span)} of the time, and all wait for it",
        where=[Spot(loader.at, f"slow on rank {slowest.number}") if loader.at else None],
        evidence=[
            f"rank {number}  {seconds:.1f} s of {span:.1f} s waiting for data"
            for number, (seconds, span) in list(waits.items())[:8]
        ],
        severity="warning",
        statement="the work is not divided evenly",
        advice=["Give each rank as much work (shuffle before dividing), or give the loader workers."],
        step=slowest.chart.windows,
        rank=slowest.number,
    )


def _waited(rank: Rank) -> tuple[float, float]:
    """Seconds that the loaders kept it waiting, and seconds of training, over the passes that are known."""
    passes = [row for loader in rank.chart.loaders.values() for row in loader.passes if row["windows"]]
    begins = [optimizer.made for optimizer in rank.chart.optimizers.values()]
    if len(passes) < 2 or not begins:
        return 0.0, 0.0
    return sum(row["waited"] for row in passes), max(row["t"] for row in passes) - min(begins)
