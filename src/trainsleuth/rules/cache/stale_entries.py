"""Prepared results are there, and are not used.

What it detects
    In a log: lines that tell in which share of cases the program fell back to computing anew, at half or more, at the end of the run, and
    not only on the first pass. That the same things were found before, or that a cache is hit at the same time, makes stale entries likely.
Why it matters
    The work that the cache was to save is done again, each epoch; and entries that lack a part may be wrong in other ways.
How it is confirmed
    By the rates. That the entries were made under another configuration is settled by clearing the cache once.
How to cure it
    Clear the cache; put the settings that shape an entry into its key.
When it is wrong
    A first pass fills the cache and misses each time: one pass alone is not told.
"""

from trainsleuth.case.record_chart import Message, SourceRecord
from trainsleuth.rules import counted, records
from trainsleuth.rules.kinds import Missing, Seen, Verdict, record_rule
from trainsleuth.rules.wording import percent


@record_rule("cache/stale-entries", "cause")
def rule(source: SourceRecord) -> Verdict:
    found = counted.messages(source)
    falling = [m for m in found if (counted.fallback_share(m.last_text) or 0) >= 0.5]
    if not falling:
        return None
    worst = falling[0]
    before = [m for m in found if m.line < worst.line and m is not worst and _prepared(m)]
    hits = [m for m in found if counted.CACHE.search(m.text) and "hit" in m.text.lower() and not (counted.share(m.text) or 1) < 0.5]
    if not before and not hits and worst.count < 2:
        return Missing("a second pass: on the first one a cache is filled, and missed each time")
    rate = counted.fallback_share(worst.last_text) or 0.0
    return Seen(
        title=f"{percent(rate)} of the samples fall back to being computed anew",
        where=[
            *[records.spot(source, m.line, "they were there before") for m in before[-1:]],
            records.spot(source, worst.line, "falls back"),
            *[records.spot(source, m.line, "while the cache is hit") for m in hits[:1]],
        ],
        evidence=[
            f"line {worst.line:,}: {worst.text[:160]}" + (f" ({worst.count:,} such lines)" if worst.count > 1 else ""),
            *[f"before, line {m.line:,}: {m.text[:140]}" for m in before[-1:]],
            *[f"at the same time, line {m.line:,}: {m.text[:140]}" for m in hits[:1]],
        ],
        severity="warning",
        statement="the cache gives entries that were made under another configuration and lack what is asked for"
        if before or hits
        else "what was prepared is not found, or not looked for",
        advice=["Clear the cache once; then make the settings that shape an entry part of its key."],
        certain=False,
        settle="clear the cache and run two epochs: if the second one falls back again, the entries lack it from the start",
    )


def _prepared(message: Message) -> bool:
    """A line with a share that says that prepared results were used."""
    rate = counted.share(message.text)
    return rate is not None and rate >= 0.5 and counted.fallback_share(message.text) is None and bool(counted.CACHE.search(message.text))
