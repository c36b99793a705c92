"""The program waits at a queue that nobody feeds any more.

What it detects
    The main thread waits for an entry of a queue (`queue.Queue`, `multiprocessing.Queue`, an event, a future), and no thread or
    process of the run is doing anything that could put one there.
Why it matters
    The producer died or ended early, mostly with a message that scrolled away; the consumer never hears of it.
How it is confirmed
    By the stacks of all threads and processes of the run.
How to cure it
    Let the producer put an end mark in a `finally`, or call `get(timeout=…)` and look whether the producer is alive.
When it is wrong
    When the entries come from outside the run.
"""

from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules import still as s
from trainsleuth.rules.kinds import Verdict, run_rule


@run_rule("hang/queue-nobody-feeds")
def rule(run: RunChart) -> Verdict:
    still = run.standstill()
    for process, thread in s.end_of_chain(still) if still is not None else ():
        if still is None or not s.at_a_queue(thread) or s.is_worker(thread):
            continue
        others = [other for other in process.threads if other is not thread and other.frames]
        children = still.children(process.pid)
        ended = [child for child in children if child.state == "Z"]
        return s.about(
            still,
            "the program waits at a queue that nobody feeds",
            s.spots(still, process, thread, "waits for an entry"),
            [
                s.how_it_waits(process, thread),
                f"other threads of Python's: {', '.join(other.name or str(other.tid) for other in others[:5]) or 'none'};"
                f" child processes: {len(children) - len(ended)}" + (f", and {len(ended)} that ended" if ended else ""),
                *(_crashes(run)),
            ],
            "the producer is gone, or waits itself",
            [
                "Put an end mark into the queue in a `finally` of the producer, or use `get(timeout=…)` and look whether it is alive."
            ],
            process,
        )
    return None


def _crashes(run: RunChart) -> list[str]:
    return [
        f"a process ended with {chart.crash['kind']}: {chart.crash['message'][:100]}" for chart in run.crashes() if chart.crash
    ][:2]
