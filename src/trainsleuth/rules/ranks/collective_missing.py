"""One rank waits in a collective that another one never enters.

What it detects
    The ranks stand still, and not in the same place: one is inside a collective, the others are past it, before it, in backward, or
    at their end.
Why it matters
    A collective returns when all ranks have entered it. They wait for each other until a time limit kills them all.
How it is confirmed
    By the table of ranks: how many collectives each has entered, which one it is in, and by which line.
How to cure it
    Let every rank make the same calls: no collective inside `if rank == 0`, and a decision to stop early must be taken together.
When it is wrong
    When a rank is merely late; then the run goes on, and says so.
"""

from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules import still as s
from trainsleuth.rules.kinds import Spot, Verdict, run_rule
from trainsleuth.rules.side_by_side import ABOUT_RANKS, ranks_of, table


@run_rule(
    "ranks/collective-missing", explains=ABOUT_RANKS, masks=("hang/python-lock", "hang/queue-nobody-feeds", "hang/input-blocked")
)
def rule(run: RunChart) -> Verdict:
    still, ranks = run.standstill(), ranks_of(run)
    if still is None or len(ranks) < 2:
        return None
    inside = [(rank, entered) for rank in ranks if (entered := rank.waits_in()) is not None]
    absent = [rank for rank in ranks if rank.waits_in() is None]
    ahead = max((entered.count for _, entered in inside), default=0)
    behind = [rank for rank, entered in inside if entered.count < ahead]
    if not inside:
        in_backward = [rank for rank in ranks if rank.in_backward]
        if not in_backward or len(in_backward) == len(ranks):
            return None
        first, line = in_backward[0], in_backward[0].line()
        title = f"rank {first.number} waits in backward for ranks that do not come"
        where = [Spot(line, f"rank {first.number} waits here") if line else None]
    elif absent or behind:
        rank, entered = max(inside, key=lambda pair: pair[1].count)
        late = (absent or behind)[0]
        title = f"rank {rank.number} waits in {entered.name}, which rank {late.number} never enters"
        where = [Spot(entered.at, f"rank {rank.number} waits here") if entered.at else None]
    else:
        return None
    elsewhere = [rank for rank in ranks if rank in absent or rank in behind]
    where += [Spot(at, f"rank {rank.number} is here instead") for rank in elsewhere[:2] if (at := rank.line())]
    process = next(rank.seen for rank in ranks if rank.seen is not None)
    return s.about(
        still, title, where, table(ranks), "the ranks do not make the same calls",
        ["Take the collective out of the branch that only some ranks run, or let all ranks decide together."], process,
    )  # fmt: skip
