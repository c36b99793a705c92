"""An OpenMP team is smaller than the code in it counts on.

What it detects
    Threads stand at a barrier inside an OpenMP region, all that there are, and the limit on threads (`OMP_THREAD_LIMIT`, or
    `OMP_DYNAMIC`) is below the number that torch was told to use.
Why it matters
    oneDNN divides its work by the number it was told, and waits for all of them. Those that the limit kept away never come.
How it is confirmed
    By the stacks, the variable and the number together. A trial without the limit goes on.
How to cure it
    Remove the limit, or do not ask for more threads than it allows: `torch.set_num_threads(n)` with n up to the limit. Switching oneDNN
    off cures it too, and costs a third of the speed.
When it is wrong
    Without the variable in sight (a process that was attached to) it stays a suspicion.
References
    pytorch#91547
"""

from trainsleuth.case.run_chart import RunChart
from trainsleuth.case.standstill import ProcessSeen, ThreadSeen
from trainsleuth.rules import still as s
from trainsleuth.rules.kinds import Spot, Verdict, run_rule


@run_rule("hang/openmp-thread-limit", settled_by=("openmp-limit-off", "threads"), masks=("hang/two-openmp-runtimes",))
def rule(run: RunChart) -> Verdict:
    still = run.standstill()
    for process, thread in s.end_of_chain(still) if still is not None else ():
        if still is None or process.forked or not _at_a_barrier(thread):
            continue
        chart = s.chart_of(run, process)
        variables = s.variables(run, process)
        limit = variables.get("OMP_THREAD_LIMIT", "")
        dynamic = variables.get("OMP_DYNAMIC", "").lower() == "true"
        threads, set_at = chart.threads[-1] if chart is not None and chart.threads else (None, None)
        known = (limit.isdigit() and threads is not None and int(limit) < threads) or (dynamic and threads is not None)
        if not known and (chart is not None or not _generated(thread)):
            continue
        evidence = [s.how_it_waits(process, thread), _team(process)]
        if known:
            said = f"OMP_THREAD_LIMIT={limit}" if limit.isdigit() else "OMP_DYNAMIC=true"
            evidence.insert(0, f"{said}, and torch was told to use {threads} threads")
        variable = "OMP_THREAD_LIMIT" if limit or not dynamic else "OMP_DYNAMIC"
        return s.about(
            still,
            "an OpenMP barrier waits for threads that are not allowed to exist",
            [
                *s.spots(still, process, thread, "does not return"),
                Spot(set_at, f"asks for {threads} threads") if set_at else None,
            ],
            evidence,
            "the limit on OpenMP threads is below the number that torch counts on",
            [
                f"Unset {variable}, or call `torch.set_num_threads` with a number within the limit.",
                "Nothing is wrong with the layers on the way: in-place activations do not matter here.",
            ],
            process,
            certain=bool(known),
        )
    return None


def _at_a_barrier(thread: ThreadSeen) -> bool:
    """Inside an OpenMP region, and at a place that waits: in the runtime itself, or in a loop that only waits."""
    inner = thread.innermost_native()
    return (
        thread.inside(*s.OPENMP) and bool(inner) and (inner[0].library.startswith(s.OPENMP) or _generated(thread) or thread.spins)
    )


def _generated(thread: ThreadSeen) -> bool:
    inner = thread.innermost_native()
    return bool(inner) and inner[0].function.startswith("0x") and thread.inside(*s.OPENMP)


def _team(process: ProcessSeen) -> str:
    running = sum(1 for thread in process.threads if thread.spins or thread.state == "R")
    return f"{running} of its {len(process.threads)} threads run, none of them computes"
