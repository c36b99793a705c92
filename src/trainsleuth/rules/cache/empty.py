"""A cache is on and holds nothing.

What it detects
    A line of the log that speaks of a cache and counts zero entries, and no later line of that shape that counts more.
Why it matters
    Every access takes the slow way; and a cache that was filled from an empty list says that the list is empty.
How it is confirmed
    By the count.
How to cure it
    Look at what it is filled from, before looking at the cache.
When it is wrong
    A cache that fills on first use is empty at first; only its last count is taken.
"""

from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.rules import counted, records
from trainsleuth.rules.kinds import Seen, Verdict, record_rule


@record_rule("cache/empty")
def rule(source: SourceRecord) -> Verdict:
    empty = [m for m in counted.messages(source) if counted.CACHE.search(m.text) and counted.says_nothing_there(m)]
    if not empty:
        return None
    return Seen(
        title="the cache holds nothing: " + empty[0].text[:120],
        where=[records.spot(source, message.line, "counts nothing") for message in empty[:3]],
        evidence=[f"line {message.line:,}: {message.text[:160]}" for message in empty[:3]],
        severity="warning",
        statement="the cache was filled from an empty list, or its budget admits nothing",
        advice=["Print how many samples there are before the cache is filled."],
        certain=False,
        settle="the number of samples that were found: if it is zero, the data set is the cause and not the cache",
    )
