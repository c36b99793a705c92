"""Threads of the program wait for locks that will never be free.

What it detects
    Every thread that could go on stands at a lock in the program's own code: two that hold what the other one wants, or one that
    wants what it holds itself.
Why it matters
    It never ends.
How it is confirmed
    By the stacks of all threads. Which locks each of them holds is read off the `with` blocks around the lines it stands in. A trial in which
    all locks of the program are one goes on (knob `locks-as-one`).
How to cure it
    Take locks in one order everywhere, hold them as short as possible, or use an RLock where a thread takes its own lock again.
When it is wrong
    A lock that somebody outside of Python releases.
"""

from trainsleuth.case.run_chart import RunChart
from trainsleuth.case.standstill import ThreadSeen, is_users, users_line
from trainsleuth.rules import still as s
from trainsleuth.rules.kinds import Spot, Verdict, run_rule
from trainsleuth.rules.locate import held_locks


@run_rule("hang/python-lock", settled_by=("locks-as-one",))
def rule(run: RunChart) -> Verdict:
    still = run.standstill()
    for process, thread in s.end_of_chain(still) if still is not None else ():
        if still is None or not _at_a_lock_of_its_own(thread):
            continue
        others = [other for other in process.threads if other is not thread and other.frames]
        waiting = [thread, *(other for other in others if _at_a_lock_of_its_own(other))]
        evidence = []
        for each in waiting[:4]:
            wants, holds = held_locks([(frame.file, frame.line) for frame in each.frames if is_users(frame)])
            at = users_line(each)
            line = f"line {at.line}" if at else "?"
            evidence.append(
                f"{each.name or each.tid}: waits at {line}" + (f" for {wants}" if wants else "")
                + (f", inside {', '.join(holds)}" if holds else "")
            )  # fmt: skip
        ring = len(waiting) > 1
        return s.about(
            still,
            f"{len(waiting)} threads wait for each other's locks"
            if ring
            else "a thread waits for a lock that nobody will release",
            [Spot(at, f"{each.name or each.tid} waits here") for each in waiting[:4] if (at := users_line(each))],
            [*evidence, s.how_it_waits(process, thread)],
            "locks are taken in two orders" if ring else "the lock is held by a thread that waits for it itself, or is gone",
            ["Take locks in one order everywhere; use an RLock where a thread may take its own lock again."],
            process,
        )
    return None


def _at_a_lock_of_its_own(thread: ThreadSeen) -> bool:
    """At a lock, and asked for by the program's own line rather than by a queue, a pool or a library."""
    inner = s.innermost_python(thread)
    return (
        inner is not None
        and s.at_a_lock(thread)
        and (is_users(inner) or inner.file.endswith("threading.py"))
        and not s.at_a_queue(thread)
    )
