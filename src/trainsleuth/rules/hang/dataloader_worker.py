"""A worker of a data loader is stuck, or dead.

What it detects
    The training waits for the next batch, and a worker process stands inside the data set's own code, or is gone.
Why it matters
    The loader hands batches out in order: one worker that stands holds up everything.
How it is confirmed
    By the stacks of the workers. With `num_workers=0` the same line stands in the main process, or is fine where the lock was inherited.
How to cure it
    See the line at which the worker stands. A lock that was held when the worker was forked: make it in `worker_init_fn`, or use
    `multiprocessing_context="spawn"`. A wait for something outside: give it a time limit.
When it is wrong
    A sample that takes longer than anything before it, and neither computes nor reads.
"""

import re

from trainsleuth.case.entries import Place, place
from trainsleuth.case.run_chart import RunChart
from trainsleuth.case.standstill import ProcessSeen, Standstill, is_users, users_line
from trainsleuth.rules import still as s
from trainsleuth.rules.kinds import STANDSTILLS, Seen, Spot, Verdict, run_rule

DIED = re.compile(r"DataLoader worker \(pid\(?s?\)? ([\d, ]+)\) (exited unexpectedly|is killed by signal: [^.]*)")


@run_rule(
    "hang/dataloader-worker", settled_by=("workers",),
    explains=(*STANDSTILLS, "crash/exception", "crash/known"),
    masks=("hang/python-lock", "hang/queue-nobody-feeds", "hang/input-blocked"),
)
def rule(run: RunChart) -> Verdict:
    still = run.standstill()
    if still is None:
        return _died(run)
    for process in still.python():
        waiting = process.main
        if waiting is None or s.in_file(waiting, "torch/utils/data/dataloader.py") is None or s.is_worker(waiting):
            continue
        stuck = [worker for worker in still.children(process.pid) if _stands_in_the_data_set(worker)]
        dead = [worker for worker in still.children(process.pid) if worker.state == "Z"]
        asks = users_line(waiting)
        if stuck:
            return _stuck(still, run, process, stuck, asks)
        if dead:
            return s.about(
                still,
                f"{len(dead)} of the loader's workers died, and the training waits for them",
                [Spot(asks, "waits for the next batch") if asks else None],
                [f"dead: process {', '.join(str(worker.pid) for worker in dead[:4])}", *_room(still)],
                "a worker process ended without a word",
                ["Run with num_workers=0 to see its error; a worker that is killed is often out of memory."],
                process,
            )
    return None


def _died(run: RunChart) -> Verdict:
    """torch noticed that a worker was gone and raised an error in the main process."""
    for chart in run.crashes():
        found = DIED.search(chart.crash["message"]) if chart.crash is not None else None
        if found is None or chart.crash is None:
            continue
        frames = [at for frame in reversed(chart.crash["frames"]) if (at := place(frame))]
        return Seen(
            title=f"worker {found[1]} of the data loader died: {found[2]}",
            where=[Spot(at, "asked for the next batch") for at in frames[:1]],
            evidence=[
                f"after {chart.windows:,} windows",
                "a worker that dies by a signal says nothing itself; its batch is lost",
            ],
            statement="a worker process was killed while it made a batch",
            advice=[
                "Run with num_workers=0 to see the error; look whether the machine ran out of memory, or a limit on CPU time was set."
            ],
            step=chart.windows,
        )
    return None


def _stands_in_the_data_set(worker: ProcessSeen) -> bool:
    """A worker whose main thread is in user's code, not waiting for its next orders. The lines that made it are in its stack, too: those
    behind torch's own loop are the parent's."""
    if worker.main is None or not s.is_worker(worker.main):
        return False
    frames = worker.main.python()
    loop = next(index for index, frame in enumerate(frames) if frame.file.endswith(s.WORKER_LOOP))
    return any(is_users(frame) for frame in frames[:loop])


def _stuck(still: Standstill, run: RunChart, process: ProcessSeen, stuck: list[ProcessSeen], asks: Place | None) -> Verdict:
    worker = stuck[0]
    thread = worker.main
    assert thread is not None
    at = users_line(thread)
    fork = s.fork_facts(run, worker)
    locked = worker.forked and s.at_a_lock(thread)
    index = worker.sample
    return s.about(
        still,
        f"a loader worker stands{' at a lock that it inherited' if locked else ''}, and the training waits for its batch"
        + (f" (sample {index})" if index else ""),
        [
            Spot(at, f"worker {worker.pid} {'goes round and round' if s.runs(thread) else 'stands'} here") if at else None,
            Spot(asks, "waits for the next batch") if asks else None,
        ],
        [
            f"{len(stuck)} of {len(still.children(process.pid))} worker processes stand in the data set's code",
            s.how_it_waits(worker, thread),
            *([f"the parent had these threads when it forked: {', '.join(str(t[0]) for t in fork.python_threads[:4])}"]
              if locked and fork is not None and fork.python_threads else []),
            *_room(still),
        ],
        "the lock was held by another thread of the parent when the worker was forked" if locked else "one sample never arrives",
        ["Make the lock in the worker (worker_init_fn), or give the loader multiprocessing_context=\"spawn\"."]
        if locked
        else ["See why this line waits; give it a time limit, or skip the sample."],
        worker,
    )  # fmt: skip


def _room(still: Standstill) -> list[str]:
    free = still.machine.get("shm_free")
    return [f"/dev/shm has {free / 2**20:.0f} MB left"] if isinstance(free, int) and free < 64 << 20 else []
