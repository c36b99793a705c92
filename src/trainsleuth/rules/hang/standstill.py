"""The run stands still.

What it detects
    No heartbeat for longer than this run has ever paused before, and two looks from outside that find no sign of life: no data moves,
    no memory is taken, no line of the program follows another, no thread computes.
    From a log alone: one pause between two stamped lines that is far longer than all others of the run.
Why it matters
    It will not go on by itself, and it may hold its devices for days.
How it is confirmed
    It is a symptom. The stacks of all threads are in the case; where a rule knows the pattern, the cause is named.
How to cure it
    See the cause. `trainsleuth run --on-hang kill` ends such a run with its report.
When it is wrong
    A program that waits for something outside which comes late. It says so when the run goes on.
"""

from trainsleuth.case.record_chart import Pause, SourceRecord
from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules import records
from trainsleuth.rules import still as s
from trainsleuth.rules.kinds import Missing, Seen, Verdict, record_rule, run_rule

MOST_ORDINARY = 20
AT_LEAST = 600.0  # seconds: shorter pauses have too many good reasons
WORDS = {"data": "the data loader", "forward": "forward", "step": "the optimizer's step", "outside": "the program"}


@run_rule("hang/standstill", "symptom")
def rule(run: RunChart) -> Verdict:
    still = run.standstill()
    ends = s.end_of_chain(still) if still is not None else []
    if still is None:
        return None
    if not ends:
        process = (still.python() or list(still.processes))[0]
        return s.about(still, f"nothing has moved for {s.duration(still)}", [], [f"{s.named(process)} was last seen in: {process.phase or '?'}"],
                       "", [], process)  # fmt: skip
    process, thread = ends[0]
    phase = s.phase_of(process, thread)
    if phase == "backward":
        return None
    return s.about(
        still, f"{WORDS[phase]} has stood still for {s.duration(still)}", s.spots(still, process, thread, "stands here"),
        [s.how_it_waits(*held) for held in ends[:4]], "", [], process,
    )  # fmt: skip


@record_rule("hang/standstill")
def record(source: SourceRecord) -> Verdict:
    pauses = source.pauses
    if pauses.count < MOST_ORDINARY:
        return Missing("time stamps on twenty lines")
    inside = [pause for pause in pauses.longest if not _between_runs(source, pause)]
    if not inside:
        return None
    longest = inside[0]
    next_longest = inside[1].seconds if len(inside) > 1 else 4 * pauses.usually()
    if longest.seconds < AT_LEAST or longest.seconds < 20 * max(pauses.usually(), 0.5) or longest.seconds < 4 * next_longest:
        return None
    return Seen(
        title=f"nothing was written for {_length(longest.seconds)}, where {_length(max(pauses.usually(), 1))} is usual",
        where=[records.spot(source, longest.before, "the last line before"), records.spot(source, longest.after, "the first line after")],
        evidence=[
            f"{'the next longest pause is' if len(inside) > 1 else 'no other pause is longer than'} {_length(next_longest)}; "
            f"{pauses.count:,} lines with a time, "
            f"over {_length(pauses.last - pauses.first)}"
        ],
        severity="warning",
        statement="the run stood still and went on: a file system, a download, a machine that slept, a straggler",
        advice=["Look at what the lines before and after do, and at the machine's own log at that time."],
        certain=False,
        settle="`trainsleuth attach PID` while it stands, or `trainsleuth run`, which takes the stacks by itself",
    )


def _between_runs(source: SourceRecord, pause: Pause) -> bool:
    """A pause at whose end a new run begins is a person's, not the program's."""
    starts = [min((series.first_line for series in run.series.values()), default=0) for run in records.runs(source)[1:]]
    return any(pause.before < start <= pause.after + 50 for start in starts)


def _length(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
