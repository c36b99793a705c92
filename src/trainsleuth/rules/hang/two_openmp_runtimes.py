"""Two OpenMP runtimes are loaded, and the run stands in one of them.

What it detects
    A thread stands inside an OpenMP runtime, and the process has loaded runtimes of two makers (GNU's libgomp, LLVM's libomp, Intel's
    libiomp5).
Why it matters
    Each keeps a team of its own and knows nothing of the other: they may wait for each other, and they share the cores badly.
How it is confirmed
    A suspicion: many programs load two and run well. It is named only for a run that stands in one of them.
How to cure it
    Install the packages that bring them from one source (all from pip, or all from conda), or set `MKL_THREADING_LAYER=GNU`.
When it is wrong
    When the thread waits for another reason; the stacks are in the case.
"""

from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules import still as s
from trainsleuth.rules.kinds import Verdict, run_rule


@run_rule("hang/two-openmp-runtimes")
def rule(run: RunChart) -> Verdict:
    still = run.standstill()
    for process, thread in s.end_of_chain(still) if still is not None else ():
        makers = {maker for maker in s.OPENMP for path in process.openmp if path.rsplit("/", 1)[-1].startswith(maker)}
        if still is None or len(makers) < 2 or not thread.inside(*s.OPENMP):
            continue
        return s.about(
            still,
            f"it stands in one of {len(makers)} OpenMP runtimes that are loaded side by side",
            s.spots(still, process, thread, "stands here"),
            [f"loaded: {', '.join(process.openmp)}", s.how_it_waits(process, thread)],
            "two OpenMP runtimes in one process",
            ["Bring numpy, torch and the like from one source, or set MKL_THREADING_LAYER=GNU."],
            process,
            certain=False,
        )
    return None
