"""The ranks enter different collectives, or one call off from each other.

What it detects
    At the same number the ranks entered another collective, or one of another shape. Or the run came to its end, and the ranks
    have entered different numbers of them.
Why it matters
    gloo and NCCL pair calls by their order, not by their meaning: from the first difference on, wrong things are added up, silently, until
    something stands still or fails.
How it is confirmed
    By the counters and the latest calls of each rank; in `diagnose`, by the flight recorder dumps that the ranks left.
How to cure it
    Let every rank make the same calls in the same order, also where a rank has nothing to contribute (let it send zeros).
When it is wrong
    Collectives of sub-groups are left out of the count; those are not judged.
"""

from collections.abc import Sequence

from trainsleuth.case.entries import Place
from trainsleuth.case.record_chart import RecordChart
from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules import flights
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, records_rule, run_rule
from trainsleuth.rules.side_by_side import ABOUT_RANKS, Entered, Rank, ranks_of, table
from trainsleuth.rules.still import missing

MOST_TOLD = 8
ADVICE = ["Let every rank make the same calls in the same order, also where it has nothing to contribute."]


@run_rule(
    "ranks/collective-mismatch", explains=ABOUT_RANKS, settled_by=("ranks-do-not-wait",),
    masks=("ranks/collective-missing", "ranks/straggler", "hang/python-lock", "hang/queue-nobody-feeds", "hang/input-blocked", "crash/native-code"),
)  # fmt: skip
def rule(run: RunChart) -> Verdict:
    still, ranks = run.standstill(), ranks_of(run)
    if len(ranks) < 2 or not any(rank.collectives for rank in ranks):
        return None
    differs = _first_difference([rank.latest() for rank in ranks])
    if differs is not None:
        return Seen(
            title=f"at collective {differs[0].count} the ranks call {' and '.join(dict.fromkeys(each.said() for each in differs))}",
            where=[Spot(each.at, f"rank {rank.number} calls {each.said()}") for rank, each in zip(ranks, differs) if each.at],
            evidence=[*table(ranks), *(missing(still) if still is not None else [])],
            statement="the ranks are not in the same call",
            advice=ADVICE,
            step=max(rank.chart.windows for rank in ranks) or None,
        )
    return _out_of_step(ranks) or (None if still is not None else _at_the_end(ranks))


@records_rule("ranks/collective-mismatch", masks=("ranks/collective-missing",))
def record(chart: RecordChart) -> Verdict:
    """Flight recorder dumps of several ranks: the first number at which they entered different things."""
    for ranks in flights.groups(chart):
        for number in sorted(set.intersection(*map(set, ranks.values()))):
            calls = [known[number] for known in ranks.values()]
            if len({call.meaning for call in calls}) > 1:
                told = list({call.meaning: call for call in reversed(calls)}.values())[::-1]
                return Seen(
                    title=f"at collective {number:,} the ranks call {' and '.join(call.said() for call in told)}",
                    where=[Spot(call.at, f"rank {call.rank} calls {call.said()}") for call in told if call.at],
                    evidence=[call.told() for call in [*told, *(call for call in calls if call not in told)][:MOST_TOLD]],
                    statement="the ranks are not in the same call",
                    advice=ADVICE,
                    certain=False,
                    settle=flights.SETTLE,
                )
    return None


def _out_of_step(ranks: Sequence[Rank]) -> Verdict:
    """Gradients are shared in each step, and at the same call the ranks are in different steps: they are paired one off."""
    known = [dict(rank.chart.collective_history) for rank in ranks]
    shared = sorted(set(known[0]).intersection(*known[1:]))
    apart = [count for count in shared if len({history[count] for history in known}) > 1]
    if len(apart) < 2 or shared[-2:] != apart[-2:] or not all(rank.collectives >= rank.chart.windows > 8 for rank in ranks):
        return None
    before = max((count for count in shared if count < apart[0]), default=0)
    name, at = _most_called(ranks[0])
    return Seen(
        title=f"the ranks are out of step: at the same {name} they are in different steps, and add up what does not belong together",
        where=[Spot(at, "paired with another step's call on another rank") if at else None],
        evidence=[
            f"still in step at collective {before:,}, no longer at collective {apart[0]:,}",
            *(
                f"rank {rank.number}  in step {history[apart[-1]]:,} at collective {apart[-1]:,}"
                for rank, history in zip(ranks[:8], known)
            ),
        ],
        statement="a rank left a collective out, and the calls after it are paired wrongly",
        advice=ADVICE,
        step=max(history[apart[0]] for history in known),
    )


def _most_called(rank: Rank) -> tuple[str, Place | None]:
    number = max(rank.chart.collective_places, key=lambda number: _count(rank, number))
    return rank.chart.collective_places[number]


def _first_difference(latest: Sequence[list[Entered]]) -> list[Entered] | None:
    """The first number, of those that all ranks still know, at which they entered different things."""
    by_count = [{each.count: each for each in rows} for rows in latest]
    shared = set(by_count[0]).intersection(*by_count[1:])
    for count in sorted(shared):
        row = [known[count] for known in by_count]
        if len({(each.name, each.shape) for each in row}) > 1:
            return row
    return None


def _at_the_end(ranks: Sequence[Rank]) -> Verdict:
    """Nothing stood still; have all ranks entered the same number?"""
    counts = {rank.number: rank.collectives for rank in ranks}
    if len(set(counts.values())) == 1:
        return None
    if not all(rank.chart.ended for rank in ranks) and not any(rank.chart.crash for rank in ranks):
        return Missing("the end of the run: until then one rank may only be ahead")
    least, most = min(ranks, key=lambda rank: rank.collectives), max(ranks, key=lambda rank: rank.collectives)
    named = []
    for number, (name, at) in most.chart.collective_places.items():
        more, fewer = (
            _count(most, number),
            sum(_count(least, n) for n, known in least.chart.collective_places.items() if known == (name, at)),
        )
        if more != fewer and (more, fewer) != (1, 0):  # one call that a rank makes alone waits, and is found, or its record was lost
            named.append((name, at, more, fewer))
    if not named:
        return None
    name, at, more, fewer = max(named, key=lambda row: abs(row[2] - row[3]))
    return Seen(
        title=f"rank {most.number} made {more:,} calls of {name}, rank {least.number} only {fewer:,}: they were paired one off",
        where=[Spot(at, "not called equally often on all ranks") if at else None],
        evidence=[f"rank {rank.number}  {rank.collectives} collectives entered" for rank in ranks[:8]],
        statement="a rank leaves a collective out, and the calls after it are paired wrongly",
        advice=ADVICE,
        step=max(rank.chart.windows for rank in ranks),
    )


def _count(rank: Rank, number: int) -> int:
    counts = rank.chart.collectives.get("counts", [])
    return int(counts[number]) if number < len(counts) else 0
