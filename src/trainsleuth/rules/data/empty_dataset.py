"""The data set is empty.

What it detects
    A line of the log that counts samples, files or images and arrives at zero, and no later line of that shape that counts more.
Why it matters
    The program trains on nothing, or stops far from the cause. A cache that is filled from an empty list is empty too.
How it is confirmed
    By the count. Why it is zero is not in the log: the name of the split (`train`, `Train`), a missing sub-folder, sequences that are
    shorter than the clip, a pattern that matches nothing.
How to cure it
    List the folder that the program looked in, with the very path it used; make an empty list an error.
When it is wrong
    Some splits are empty on purpose. If the same line counts other things that are there, it is a note.
"""

from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.rules import counted, records
from trainsleuth.rules.kinds import Seen, Verdict, record_rule


@record_rule("data/empty-dataset", "cause", explains=("cache/empty",))
def rule(source: SourceRecord) -> Verdict:
    empty = [m for m in counted.messages(source) if counted.says_nothing_there(m) and not counted.CACHE.search(m.text)]
    if not empty:
        return None
    alone = [message for message in empty if not counted.also_counts_some(message)]
    shown = alone or empty
    return Seen(
        title="the data set is empty: " + shown[0].text[:120],
        where=[records.spot(source, message.line, "counts nothing") for message in shown[:3]],
        evidence=[f"line {message.line:,}: {message.text[:160]}" for message in shown[:3]],
        severity="critical" if alone else "note",
        statement="the list of samples is empty: nothing matched where the program looked",
        advice=[
            "List the folder with the very path that the program used; compare the name of the split letter by letter (train, Train).",
            "Look for sub-folders that are missing, and for samples that a length filter drops.",
        ],
        certain=False,
        settle="print the folder, the pattern, and how many entries each filter leaves",
    )
