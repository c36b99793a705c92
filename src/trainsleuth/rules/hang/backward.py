"""backward() does not return.

What it detects
    The run stands still, and the thread at the end of the chain is inside backward. From a log alone: the traceback of a run that was
    interrupted by hand inside backward.
Why it matters
    Nothing after it ever happens. The line that stands is rarely the line at fault: backward runs other people's code.
How it is confirmed
    It is a symptom. The native frames tell what it waits for; where a rule knows the pattern, the cause is named.
How to cure it
    See the cause. Layers that are blamed by habit, such as an in-place ReLU, do not make backward wait.
When it is wrong
    A single backward that takes longer than everything before it, and computes in code that looks like a waiting loop.
"""

from trainsleuth.case.entries import place
from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules import records
from trainsleuth.rules import still as s
from trainsleuth.rules.kinds import Seen, Spot, Verdict, record_rule, run_rule


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


@record_rule("hang/backward", structural=True)
def record(source: SourceRecord) -> Verdict:
    for crash in source.crashes:
        inner = str((crash.get("raised_in") or [""])[0])
        codes = crash.get("code") or []
        if crash["kind"] != "KeyboardInterrupt" or not ("autograd" in inner or (codes and ".backward(" in codes[-1])):
            continue
        frames = [(at, code) for frame, code in zip(crash["frames"], codes) if (at := place(frame))]
        return Seen(
            title="the run was interrupted by hand inside backward: it did not return",
            where=[
                *[Spot(at, "does not return", code) for at, code in frames[-1:]],
                records.spot(source, crash.get("at") or 0, "the interrupt, in the log"),
            ],
            evidence=[f"innermost Python line: {inner}:{(crash.get('raised_in') or ['', '?'])[1]}" if inner else "the traceback ends there"],
            severity="warning",
            statement="backward waits in native code: an OpenMP barrier or a lock, more often than anything in the model",
            advice=[
                "Look at OMP_THREAD_LIMIT and OMP_NUM_THREADS against torch's threads, and at a fork after torch was used.",
                "oneDNN off, or one thread, may make it go on; that is a workaround, and costs a third of the speed.",
            ],
            certain=False,
            settle="`trainsleuth attach PID` while it stands: the native stacks tell a barrier from a lock. In-place layers do not make "
            "backward wait: their gradients are the same to the bit",
        )
    return None
