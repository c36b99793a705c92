"""One rank waits in a collective that another one never enters.

What it detects
    The ranks stand still, and not in the same place: one is inside a collective, the others are past it, before it, in backward, or
    at their end.
Why it matters
    A collective returns when all ranks have entered it. They wait for each other until a time limit kills them all.
How it is confirmed
    By the table of ranks: how many collectives each has entered, which one it is in, and by which line. In `diagnose`, by the flight
    recorder dumps that the ranks left.
How to cure it
    Let every rank make the same calls: no collective inside `if rank == 0`, and a decision to stop early must be taken together.
When it is wrong
    When a rank is merely late; then the run goes on, and says so. Dumps that were written at different moments look the same.
"""

from collections.abc import Sequence

from trainsleuth.case.entries import Place, place
from trainsleuth.case.record_chart import RecordChart
from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules import flights
from trainsleuth.rules import still as s
from trainsleuth.rules.crash.known import explained as known_crash
from trainsleuth.rules.kinds import Seen, Spot, Verdict, records_rule, run_rule
from trainsleuth.rules.locate import where_a_loop_is_left
from trainsleuth.rules.side_by_side import ABOUT_RANKS, Rank, ranks_of, table

MOST_TOLD = 4
ADVICE = ["Take the collective out of the branch that only some ranks run, or let all ranks decide together."]


@run_rule(
    "ranks/collective-missing", explains=ABOUT_RANKS, settled_by=("ranks-do-not-wait",),
    masks=("hang/python-lock", "hang/queue-nobody-feeds", "hang/input-blocked", "crash/native-code"),
)  # fmt: skip
def rule(run: RunChart) -> Verdict:
    still, ranks = run.standstill(), ranks_of(run)
    if len(ranks) < 2:
        return None
    if still is None:
        return _died_inside(ranks)
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
        where = [Spot(line, f"rank {first.number} waits here in backward") if line else None]
    elif absent or behind:
        rank, entered = max(inside, key=lambda pair: pair[1].count)
        late = (absent or behind)[0]
        title = f"rank {rank.number} waits in {entered.name}, which rank {late.number} never enters"
        where = [Spot(entered.at, f"rank {rank.number} waits here") if entered.at else None]
    else:
        return None
    elsewhere = [rank for rank in ranks if rank in absent or rank in behind]
    where += [Spot(at, f"rank {rank.number} is here instead") for rank in elsewhere[:2] if (at := rank.line())]
    lines = [spot.at for spot in where if spot is not None]
    for one, other in ((one, other) for one in lines for other in lines):
        if (left := where_a_loop_is_left(one, other)) is not None:
            where.append(Spot(one._replace(line=left), "here a rank may leave the loop alone"))
            break
    process = next(rank.seen for rank in ranks if rank.seen is not None)
    return s.about(
        still, title, where, table(ranks), "the ranks do not make the same calls",
        ADVICE, process,
    )  # fmt: skip


def _died_inside(ranks: Sequence[Rank]) -> Verdict:
    """The backend paired a collective with another one of a rank that never made this call, and gave up."""
    for rank in ranks:
        latest = rank.latest()[-1:]
        if not (rank.chart.crash or {}).get("native") or not latest or latest[0].at is None:
            continue
        entered, at = latest[0], latest[0].at
        behind = [other for other in ranks if other is not rank and other.collectives < entered.count]
        if not behind or [at.file, at.line] not in [frame[:2] for frame in rank.chart.crash["frames"]]:  # type: ignore[index]
            continue
        return Seen(
            title=f"rank {rank.number} died in {entered.name}, which rank {behind[0].number} never entered",
            where=[Spot(at, f"rank {rank.number} died here"), *_callers(rank, at)],
            evidence=[*table(list(ranks)), *known_crash([rank.chart.crash]).evidence],  # type: ignore[list-item, union-attr]
            statement="the ranks do not make the same calls",
            advice=ADVICE,
            step=rank.chart.windows or None,
        )
    return None


def _callers(rank: Rank, at: Place) -> list[Spot]:
    frames = [place(frame) for frame in reversed((rank.chart.crash or {})["frames"])]
    return [Spot(frame, "called from here") for frame in frames if frame is not None and (frame.file, frame.line) != (at.file, at.line)][:2]


@records_rule("ranks/collective-missing")
def record(chart: RecordChart) -> Verdict:
    """Flight recorder dumps of several ranks: a collective that some entered, that was not done, and that others never entered."""
    for ranks in flights.groups(chart):
        last = {rank: calls[max(calls)] for rank, calls in ranks.items()}
        behind = min(last.values(), key=lambda call: call.number)
        waiting = [calls[behind.number + 1] for calls in ranks.values() if behind.number + 1 in calls]
        if not waiting or any(call.done for call in waiting):
            continue
        late = [call for call in last.values() if call.number == behind.number]
        return Seen(
            title=f"rank {waiting[0].rank} waits in {waiting[0].said()}, which rank {behind.rank} never enters",
            where=[Spot(waiting[0].at, f"rank {waiting[0].rank} waits here") if waiting[0].at else None,
                   Spot(behind.at, f"the last collective that rank {behind.rank} entered") if behind.at else None],
            evidence=[*(call.told() for call in [*late[:MOST_TOLD], *waiting[:MOST_TOLD]]),
                      *([f"{len(late)} of {len(last)} ranks are behind"] if len(last) > 2 else [])],
            statement="the ranks do not make the same calls",
            advice=ADVICE,
            certain=False, settle=flights.SETTLE,
        )  # fmt: skip
    return None
