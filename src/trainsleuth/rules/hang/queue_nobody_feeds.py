"""The program waits at a queue that nobody feeds any more.

What it detects
    The main thread waits for an entry of a queue (`queue.Queue`, `multiprocessing.Queue`, an event, a future), and no thread or
    process of the run is doing anything that could put one there. Or every thread of a pool waits for tasks of a pool, in a task itself.
Why it matters
    The producer died or ended early, mostly with a message that scrolled away; the consumer never hears of it.
How it is confirmed
    By the stacks of all threads and processes of the run.
How to cure it
    Let the producer put an end mark in a `finally`, or call `get(timeout=…)` and look whether the producer is alive.
When it is wrong
    When the entries come from outside the run.
"""

from collections.abc import Sequence

from trainsleuth.case.entries import Place
from trainsleuth.case.run_chart import RunChart
from trainsleuth.case.standstill import ProcessSeen, Standstill, ThreadSeen, is_users, users_line
from trainsleuth.rules import still as s
from trainsleuth.rules.kinds import Spot, Verdict, run_rule


@run_rule("hang/queue-nobody-feeds")
def rule(run: RunChart) -> Verdict:
    still = run.standstill()
    for process, thread in s.end_of_chain(still) if still is not None else ():
        if still is None or not s.at_a_queue(thread) or s.is_worker(thread):
            continue
        others = [other for other in process.threads if other is not thread and other.frames]
        pool = [other for other in others if s.in_file(other, "concurrent/futures/thread.py")]
        if pool and all(_waits_for_a_task(other) for other in pool):
            return _pool_waits_for_itself(still, process, thread, pool)
        putting = [(other, at) for other in others if _puts(other) and (at := users_line(other))]
        if s.at_a_join(thread) and putting:
            return _joins_who_puts(still, process, thread, putting)
        children = still.children(process.pid)
        ended = [child for child in children if child.state == "Z"]
        too = [(other, at) for other in others if s.in_file(other, "/queue.py") and (at := users_line(other))]
        return s.about(
            still,
            "the program waits at a queue that nobody feeds" + (": its producer waits at another one" if too else ""),
            [
                *s.spots(still, process, thread, "waits for an entry"),
                *(Spot(at, f"{other.name or other.tid} waits for an entry, too") for other, at in too[:2]),
                *(Spot(at, "called from here") for at in _callers(thread)),
            ],
            [
                s.how_it_waits(process, thread),
                f"other threads of Python's: {', '.join(other.name or str(other.tid) for other in others[:5]) or 'none'};"
                f" child processes: {len(children) - len(ended)}" + (f", and {len(ended)} that ended" if ended else ""),
                *(_crashes(run)),
            ],
            "what the producer waits for never comes back: an entry was taken, and on some way through the loop not given back" if too
            else "the producer is gone, or waits itself",
            [
                *(["Give every entry back on each way through the loop, `continue` and exceptions too (try … finally)."] if too else []),
                "Put an end mark into the queue in a `finally` of the producer, or use `get(timeout=…)` and look whether it is alive."
            ],
            process,
        )
    return None


def _callers(thread: ThreadSeen) -> list[Place]:
    """The user's line that led to the one that waits, if another function holds it."""
    users = [frame for frame in thread.frames if is_users(frame)]
    return [Place(frame.file, frame.line, frame.function) for frame in users[1:2]]


def _waits_for_a_task(worker: ThreadSeen) -> bool:
    """Whether a thread of a pool waits, in a task of the user's, for the result of another task."""
    return users_line(worker) is not None and s.in_file(worker, "concurrent/futures/_base.py") is not None


def _pool_waits_for_itself(still: Standstill, process: ProcessSeen, thread: ThreadSeen, pool: Sequence[ThreadSeen]) -> Verdict:
    lines = dict.fromkeys(at for worker in pool if (at := users_line(worker)))
    return s.about(
        still,
        f"all {len(pool)} threads of a pool wait for tasks, and none is left to do them",
        [*(Spot(at, "a task of the pool waits for another task here") for at in lines), *s.spots(still, process, thread, "waits for a result")],
        [
            f"{', '.join(worker.name or str(worker.tid) for worker in pool[:8])}: each waits for a result inside a task of its own",
            s.how_it_waits(process, thread),
        ],
        "tasks submit further tasks to a pool and wait for them there; once every thread does so, nobody works",
        ["Give the inner tasks a pool of their own, or do them in the task itself; more threads only make it rarer."],
        process,
    )


def _puts(thread: ThreadSeen) -> bool:
    return any(frame.file.endswith("/queue.py") and frame.function.rpartition(".")[2] == "put" for frame in thread.python()[:6])


def _joins_who_puts(still: Standstill, process: ProcessSeen, thread: ThreadSeen, putting: Sequence[tuple[ThreadSeen, Place]]) -> Verdict:
    return s.about(
        still,
        "the program waits for a thread to end, which waits to put something into a queue that is full",
        [
            *s.spots(still, process, thread, "waits for the thread to end"),
            *(Spot(at, f"{other.name or other.tid} puts into a full queue here") for other, at in putting[:2]),
            *(Spot(at, "called from here") for at in _callers(thread)),
        ],
        [
            s.how_it_waits(process, thread),
            f"{', '.join(other.name or str(other.tid) for other, _ in putting[:4])}: waits in put, and nobody takes anything out any more",
        ],
        "who takes entries out has stopped, and waits for who puts them in",
        ["Empty the queue while you wait for the thread, or let it put with a time limit and look whether it should stop."],
        process,
    )


def _crashes(run: RunChart) -> list[str]:
    return [
        f"a process ended with {chart.crash['kind']}: {chart.crash['message'][:100]}" for chart in run.crashes() if chart.crash
    ][:2]
