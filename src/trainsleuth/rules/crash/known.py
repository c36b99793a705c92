"""The program ended with a message whose usual cause is known.

What it detects
    An exception, a CUDA assertion, a watchdog or a signal whose text is in the table of known messages.
Why it matters
    Many of these messages name the place where something was noticed, not the one where it was done, and their own advice
    (retain_graph=True, find_unused_parameters=True, weights_only=False) often hides the fault.
How it is confirmed
    Some messages are the mechanism itself. For the others the finding says what would settle it; under `trainsleuth run` more
    special rules look at what really happened.
How to cure it
    The finding says so; the user's own line comes first.
When it is wrong
    A library may raise the same words for another reason. The text of the exception is always shown.
"""

from collections.abc import Sequence

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule, record_rule
from trainsleuth.rules.known_messages import Crash, different_collectives, first_of, known, words


@cause_rule("crash/known", explains=("crash/exception",))
def rule(chart: ProcessChart) -> Verdict:
    return None if chart.crash is None or chart.crash.get("native") else explained([chart.crash], chart.windows)


@record_rule("crash/known", "cause", explains=("crash/exception",), structural=True)
def record(source: SourceRecord) -> Verdict:
    return explained([crash for crash in source.crashes if crash.get("kind") != "KeyboardInterrupt"])


def explained(crashes: Sequence[Crash], step: int | None = None) -> Seen | None:
    """What is known of the first of these crashes; the others may say more about it."""
    crash = first_of(crashes)
    if crash is None:
        return None
    also = [str(other.get("message", "")) for other in crashes if other is not crash and not other.get("frames")][:8]
    found = known({**crash, "also": also})
    if found is None:
        return None
    entry, match = found
    fill = words(entry, match)
    told_by = crash if crash.get("frames") else next((other for other in crashes if other.get("frames")), crash)
    note = entry.note if told_by is crash else "where it was reported"
    rows = told_by.get("frames") or []
    codes = told_by.get("code") or [None] * len(rows)  # a traceback quotes the source as it was; live it is read from the file
    frames = [(at, code) for frame, code in zip(reversed(rows), reversed(codes)) if (at := place(frame))]
    told = str(crash.get("message", "")).strip().splitlines()
    return Seen(
        title=entry.title.format_map(fill),
        where=[Spot(at, note if index == 0 else "called from here", code) for index, (at, code) in enumerate(frames[:3])],
        evidence=[
            f"{crash.get('kind', 'Exception')}: {told[0][:200] if told else ''}".rstrip(": "),
            *different_collectives(crashes),
            *([f"raised in DataLoader worker {crash['worker']}"] if crash.get("worker") is not None else []),
        ],
        statement=entry.cause.format_map(fill),
        advice=[text.format_map(fill) for text in entry.cure],
        step=step,
        rank=crash.get("rank"),
        certain=entry.certain,
        settle="" if entry.certain else entry.settle,
    )
