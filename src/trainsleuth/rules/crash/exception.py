"""The program ended with an exception.

What it detects
    An exception that nothing caught, live or in a log; a fault in native code (segmentation fault, illegal instruction, abort) that ended
    the process.
Why it matters
    The program did not do what it was started for.
How it is confirmed
    It is a symptom. Where a rule knows the message, its cause is named.
How to cure it
    The user's own lines of the traceback come first; the library's lines are left out.
When it is wrong
    Never; but the last line of the traceback is where it was noticed, not always where it was caused.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.rules import records
from trainsleuth.rules.kinds import Seen, Spot, Verdict, record_rule, symptom_rule
from trainsleuth.rules.known_messages import first_of


@symptom_rule("crash/exception", structural=True)
def rule(chart: ProcessChart) -> Verdict:
    crash = chart.crash
    if crash is None:
        return None
    frames = [at for frame in reversed(crash["frames"]) if (at := place(frame))]
    lines = crash["message"].strip().splitlines()
    first = "here native code broke" if crash.get("native") else "raised here"
    return Seen(
        title=f"{crash['kind']}: {lines[0][:160] if lines else ''}".rstrip(": "),
        where=[Spot(at, first if index == 0 else "called from here") for index, at in enumerate(frames[:3])],
        evidence=[f"after {chart.windows:,} windows and {chart.backwards:,} backward passes"],
        step=chart.windows,
    )


@record_rule("crash/exception", structural=True)
def record(source: SourceRecord) -> Verdict:
    crashes = [crash for crash in source.crashes if crash["kind"] != "KeyboardInterrupt"]
    crash = first_of(crashes)
    if crash is None:
        return None
    codes = crash.get("code") or [""] * len(crash["frames"])
    frames = [(at, code) for frame, code in zip(reversed(crash["frames"]), reversed(codes)) if (at := place(frame))]
    lines = str(crash["message"]).strip().splitlines()
    step = next((s.last_step for run in records.runs(source)[-1:] if (s := run.main_loss()) is not None), None)
    return Seen(
        title=f"{crash['kind']}: {lines[0][:160] if lines else ''}".rstrip(": "),
        where=[
            *[Spot(at, "raised here" if index == 0 else "called from here", code) for index, (at, code) in enumerate(frames[:3])],
            records.spot(source, crash.get("at") or 0, "in the log"),
        ],
        evidence=[
            *[line[:160] for line in lines[1:4] if line.strip()],
            f"the last step in the log is {step:,}" if step is not None else "the log shows no step before it",
            *([f"{len(crashes)} such ends in this file"] if len(crashes) > 1 else []),
        ],
        step=step,
        rank=crash.get("rank"),
    )
