"""backward() does not return.

What it detects
    The run stands still, and the thread at the end of the chain is inside backward.
Why it matters
    Nothing after it ever happens. The line that stands is rarely the line at fault: backward runs other people's code.
How it is confirmed
    It is a symptom. The native frames tell what it waits for; where a rule knows the pattern, the cause is named.
How to cure it
    See the cause. Layers that are blamed by habit, such as an in-place ReLU, do not make backward wait.
When it is wrong
    A single backward that takes longer than everything before it, and computes in code that looks like a waiting loop.
"""

from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules import still as s
from trainsleuth.rules.kinds import Verdict, run_rule


@run_rule("hang/backward", "symptom")
def rule(run: RunChart) -> Verdict:
    still = run.standstill()
    for process, thread in s.end_of_chain(still) if still is not None else ():
        if still is not None and s.phase_of(process, thread) == "backward":
            return s.about(
                still, f"backward has not returned for {s.duration(still)}", s.spots(still, process, thread, "does not return"),
                [s.how_it_waits(process, thread), f"after {process.windows:,} windows"], "", [], process,
            )  # fmt: skip
    return None
