"""The program ended with an exception.

What it detects
    An exception that nothing caught.
Why it matters
    The program did not do what it was started for.
How it is confirmed
    It is a symptom. Where a rule knows the message, its cause is named.
How to cure it
    The user's own lines of the traceback come first; the library's lines are left out.
When it is wrong
    Never; but the last line of the traceback is where it was noticed, not always where it was caused.
"""

from trainsleuth.case.chart import ProcessChart, place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, symptom_rule


@symptom_rule("crash/exception", structural=True)
def rule(chart: ProcessChart) -> Verdict:
    crash = chart.crash
    if crash is None:
        return None
    frames = [at for frame in reversed(crash["frames"]) if (at := place(frame))]
    lines = crash["message"].strip().splitlines()
    return Seen(
        title=f"{crash['kind']}: {lines[0][:160] if lines else ''}".rstrip(": "),
        where=[Spot(at, "raised here" if index == 0 else "called from here") for index, at in enumerate(frames[:3])],
        evidence=[f"after {chart.windows:,} windows and {chart.backwards:,} backward passes"],
        step=chart.windows,
    )
