"""OpenMP was used before a fork, and is used again in the child.

What it detects
    A forked child stands in the OpenMP runtime, and has none of the runtime's worker threads; its parent has.
Why it matters
    fork copies the memory of the runtime, which says that the workers are there, and not the workers. The first parallel region in
    the child waits for them for ever.
How it is confirmed
    By the stacks and the list of threads. In a trial with one thread, or with `spawn`, the child goes on.
How to cure it
    Start the child with `multiprocessing.get_context("spawn")`, or fork before the first parallel work; in the child
    `torch.set_num_threads(1)` works too, and costs the parallel speed.
When it is wrong
    A runtime that re-creates its threads after fork (LLVM's) does not stand still here, and nothing is said.
References
    pytorch#17199
"""

from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules import still as s
from trainsleuth.rules.kinds import Spot, Verdict, run_rule


@run_rule(
    "hang/openmp-after-fork", settled_by=("spawn", "threads"),
    masks=("hang/fork-with-live-threads", "hang/two-openmp-runtimes", "hang/dataloader-worker"),
)  # fmt: skip
def rule(run: RunChart) -> Verdict:
    still = run.standstill()
    for process, thread in s.end_of_chain(still) if still is not None else ():
        if still is None or not process.forked or not thread.inside(*s.OPENMP):
            continue
        parent = still.process(process.parent)
        workers = [other for other in process.threads if not other.frames]
        fork = s.fork_facts(run, process)
        return s.about(
            still, "a forked child waits for OpenMP threads that only its parent has",
            [*s.spots(still, process, thread, "does not return"), Spot(fork.at, "forked here") if fork is not None and fork.at else None],
            [
                s.how_it_waits(process, thread),
                f"the child has {len(workers)} threads beside Python's, its parent {_natives(parent)}" if parent else "",
            ],
            "OpenMP was used in the parent before the fork",
            ['Start the child with `multiprocessing.get_context("spawn")`, or fork before any tensor is computed.'],
            process,
        )  # fmt: skip
    return None


def _natives(parent: object) -> int:
    return sum(1 for thread in getattr(parent, "threads", ()) if not thread.frames)
