"""The run stands still.

What it detects
    No heartbeat for longer than this run has ever paused before, and two looks from outside that find no sign of life: no data moves,
    no memory is taken, no line of the program follows another, no thread computes.
Why it matters
    It will not go on by itself, and it may hold its devices for days.
How it is confirmed
    It is a symptom. The stacks of all threads are in the case; where a rule knows the pattern, the cause is named.
How to cure it
    See the cause. `trainsleuth run --on-hang kill` ends such a run with its report.
When it is wrong
    A program that waits for something outside which comes late. It says so when the run goes on.
"""

from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules import still as s
from trainsleuth.rules.kinds import Verdict, run_rule

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
