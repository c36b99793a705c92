"""A forked child waits for a thread that only its parent has.

What it detects
    A child that was forked, not started anew, stands at a lock, a queue, or in a library's thread pool; its parent had other threads
    when it forked, and they do not exist in the child.
Why it matters
    fork copies locks as they are and no thread but one. A lock that another thread held stays locked for ever; work that is handed to a
    pool is never taken up. TensorFlow's, gRPC's and Python's own pools are all like this.
How it is confirmed
    By the child's stack, and the threads that its parent had at the fork. With `spawn` there is nothing to wait for.
How to cure it
    Start children with `multiprocessing.get_context("spawn")`, or fork before the library or the thread pool is first used.
When it is wrong
    When the child waits for its parent on purpose; then the parent would have to stand still as well.
"""

from trainsleuth.case.entries import place
from trainsleuth.case.run_chart import RunChart
from trainsleuth.case.standstill import ThreadSeen
from trainsleuth.rules import still as s
from trainsleuth.rules.kinds import Spot, Verdict, run_rule

POOLS = {
    "libtensorflow": "TensorFlow",
    "_pywrap_tensorflow": "TensorFlow",
    "libgrpc": "gRPC",
    "cygrpc": "gRPC",
    "libarrow": "Arrow",
}


@run_rule("hang/fork-with-live-threads", settled_by=("spawn", "locks-free-at-fork"), masks=("hang/python-lock", "hang/queue-nobody-feeds"))
def rule(run: RunChart) -> Verdict:
    still = run.standstill()
    for process, thread in s.end_of_chain(still) if still is not None else ():
        if still is None or not process.forked or s.is_worker(thread) or not (s.at_a_lock(thread) or _pool(thread)):
            continue
        fork = s.fork_facts(run, process)
        parent = still.process(process.parent)
        had = [row for row in fork.python_threads if row] if fork is not None else []
        if fork is None and (parent is None or len(parent.threads) <= len(process.threads)):
            continue
        if fork is not None and fork.native_threads <= 1:
            continue
        natives = fork.native_threads if fork is not None else len(parent.threads) if parent is not None else 0
        pool = _pool(thread)
        began = next((at for row in had if (at := place(row[1]))), None)
        return s.about(
            still,
            f"a forked child waits {f'in {pool} ' if pool else ''}for a thread that only its parent has",
            [
                *s.spots(still, process, thread, "waits here, for ever"),
                Spot(fork.at, "forked here") if fork is not None and fork.at else None,
                Spot(began, f"what thread {had[0][0]} of the parent runs") if began else None,
            ],
            [
                f"the parent had {natives} threads when it forked, the child has {len(process.threads)}",
                *([f"threads of the parent that are missing: {', '.join(str(row[0]) for row in had[:4])}"] if had else []),
                s.how_it_waits(process, thread),
            ],
            "threads were running when the process was forked",
            ['Start the child with `multiprocessing.get_context("spawn")`, or fork before the threads are started.'],
            process,
        )
    return None


def _pool(thread: ThreadSeen) -> str:
    return next((name for library, name in POOLS.items() if thread.inside(library)), "")
