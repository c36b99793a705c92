"""Native code keeps the interpreter's lock and does not return.

What it detects
    One thread holds Python's global lock inside native code, through all looks, and other threads of the program wait for it.
Why it matters
    No other line of Python runs: no watchdog thread, no logger, no signal handler. Ctrl-C does nothing.
How it is confirmed
    By the stacks: who holds the lock, and who waits for it.
How to cure it
    Let the extension release the lock around the long part (`ctypes.CDLL` instead of `PyDLL`, `Py_BEGIN_ALLOW_THREADS`), or give the call a
    bound. A regular expression that backtracks without end needs another expression.
When it is wrong
    A single call that computes for very long and then returns.
"""

from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules import still as s
from trainsleuth.rules.kinds import Verdict, run_rule


@run_rule("hang/gil-held-by-native-code", masks=("hang/python-lock", "hang/queue-nobody-feeds", "hang/input-blocked"))
def rule(run: RunChart) -> Verdict:
    still = run.standstill()
    for process in still.python() if still is not None else ():
        holder = next((thread for thread in process.threads if thread.gil), None)
        starved = [thread for thread in process.threads if thread.starved]
        if still is None or holder is None or not starved or not holder.innermost_native():
            continue
        return s.about(
            still,
            f"native code holds the interpreter's lock, and {len(starved)} other threads wait for it",
            s.spots(still, process, holder, "holds the lock and does not return"),
            [s.how_it_waits(process, holder), f"waiting for the lock: {', '.join(t.name or str(t.tid) for t in starved[:5])}"],
            "a native call keeps the interpreter's lock",
            ["Release the lock in the extension (ctypes: CDLL instead of PyDLL), or bound the call."],
            process,
        )
    return None
