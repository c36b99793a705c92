"""The run gets slower and slower.

What it detects
    In a log with time stamps, speeds or step times: the pace falls from eighth to eighth of the run, to less than 60 % of what it was.
Why it matters
    Something grows: a list that keeps tensors with their graphs, a log that is rewritten, a data set that is searched from the start.
How it is confirmed
    By the times. What grows is not in the log.
How to cure it
    Look for what is kept from step to step; `loss.item()` instead of `loss` in sums, `.detach()` in lists.
When it is wrong
    Data that is sorted by length, growing resolutions and shared machines get slower too; a single drop is not told.
"""

from itertools import pairwise

from trainsleuth.case.record_chart import RunRecord, SourceRecord
from trainsleuth.case.series import Series
from trainsleuth.rules import records
from trainsleuth.rules.kinds import Missing, Seen, Verdict, record_rule
from trainsleuth.rules.wording import number, percent

PARTS = 8
FEWEST = 24


@record_rule("speed/slows-down")
def rule(source: SourceRecord) -> Verdict:
    judged = False
    for run in records.runs(source):
        for name, paces, series in _paces(run):
            judged = True
            first, last = paces[0], paces[-1]
            falls = sum(after < before for before, after in pairwise(paces))
            if last < 0.6 * first and falls >= PARTS - 2:
                return Seen(
                    title=f"{name} falls to {percent(last / first)} of what it was{records.of_run(source, run)}",
                    where=[records.spot(source, series.first_line, "here it is fast"), records.spot(source, series.last_line, "here it is slow")],
                    evidence=["by eighths of the run: " + " → ".join(number(pace) for pace in paces)],
                    severity="warning",
                    step=series.last_step,
                    statement="something grows from step to step",
                    advice=["Look for lists and sums that keep tensors (.item(), .detach()), and for files that are read from their start."],
                    certain=False,
                    settle="the memory of the process over time: if it grows too, tensors are kept; "
                    "`trainsleuth run` measures which part of a step takes longer",
                )
    return None if judged else Missing("time stamps or speeds at two dozen places")


def _paces(run: RunRecord) -> list[tuple[str, list[float], Series]]:
    found = []
    for series in run.of_role("speed"):
        if series.count >= FEWEST and series.least > 0:
            found.append((series.name, series.segments(PARTS), series))
    loss = run.main_loss()
    if loss is not None:
        paces = _steps_per_second(loss)
        if paces:
            found.append(("steps per second", paces, loss))
    return found


def _steps_per_second(series: Series) -> list[float]:
    """The median pace in each eighth: pauses for validation and checkpoints do not count."""
    marks = [(i.step, i.t) for i in series.intervals if i.step is not None and i.t is not None]
    steps = [((b[0] or 0) - (a[0] or 0), (b[1] or 0.0) - (a[1] or 0.0)) for a, b in pairwise(marks)]
    paces = [step / seconds for step, seconds in steps if step > 0 and seconds > 0]
    if len(paces) < FEWEST:
        return []
    size = len(paces) // PARTS
    return [sorted(paces[index * size : (index + 1) * size])[size // 2] for index in range(PARTS)]
