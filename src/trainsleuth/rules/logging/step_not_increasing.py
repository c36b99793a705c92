"""A metric is logged with steps that go back.

What it detects
    Three or more points of one name whose step is lower than one that was already logged to the same writer. In a record (TensorBoard,
    W&B, a table) the same; in a text log the logger's own warning that steps must increase, and how often it came.
Why it matters
    The curve folds back over itself: TensorBoard draws a zigzag, and its reader may throw the earlier points away as orphans.
How it is confirmed
    By the steps themselves, in the order in which they were logged; a trial numbers the points by one counter (knob `one-counter`).
How to cure it
    Number the points by one counter that is never reset: `epoch * len(loader) + batch`, or a `global_step` that only grows. After a
    resume begin where the checkpoint ends (`SummaryWriter(purge_step=…)`). `trainsleuth.stepping.StepLogger` does both.
When it is wrong
    Points that are logged late, out of order, by threads. Steps of different names are never compared: an epoch axis beside a step axis
    is healthy. In a record a single step back may be a resume: then it is a note. Text logs are read by people and may go back: silent.
"""

import re

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.rules import counted, records
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule, record_rule
from trainsleuth.rules.wording import count

WARNING = re.compile(
    r"(?i)steps? must be (?:strictly|monotonically)[\w -]* increasing|less than the current step|step .{0,40}lower than .{0,40}current step"
)
FEWEST = 3
WITHOUT_A_STEP = 16


@cause_rule("logging/step-not-increasing", settled_by=("one-counter",))
def rule(chart: ProcessChart) -> Verdict:
    rows = sorted((fact for fact in chart.log_back.values() if fact["count"] >= FEWEST), key=lambda fact: -fact["count"])
    if not rows:
        return _without_steps(chart)
    worst = rows[0]
    at, most_at = place(worst["at"]), place(worst["most_at"])
    return Seen(
        title=f"the steps of {worst['name']} go back: {worst['step']:,} after {worst['most']:,}",
        where=[
            Spot(at, "logs with a step that starts again") if at else None,
            Spot(most_at, "had logged the higher step") if most_at and most_at != at else None,
        ],
        evidence=[f"{fact['logger']}: {fact['name']} has at least {count(fact['count'], 'point')} below its highest step" for fact in rows[:6]],
        severity="warning",
        statement="the counter is reset, with each epoch perhaps, or two counters are used for one name",
        advice=["Count once for the whole run: epoch * len(loader) + batch. trainsleuth.stepping.StepLogger keeps such a counter."],
        step=worst["step"],
    )  # fmt: skip


def _without_steps(chart: ProcessChart) -> Verdict:
    rows = [fact for fact in chart.log_stepless.values() if fact["logger"] == "TensorBoard" and fact["count"] >= WITHOUT_A_STEP]
    if not rows:
        return None
    at = place(rows[0]["at"])
    return Seen(
        title=f"{rows[0]['name']} is logged without a step: TensorBoard draws all its points at step 0",
        where=[Spot(at, "gives no global_step") if at else None],
        evidence=[f"{fact['name']}: at least {count(fact['count'], 'point')} without a step" for fact in rows[:6]],
        severity="note",
        statement="global_step is missing",
        advice=["writer.add_scalar(name, value, global_step)"],
    )


@record_rule("logging/step-not-increasing", "cause", structural=True)
def record(source: SourceRecord) -> Verdict:
    warned = [message for message in counted.messages(source) if WARNING.search(message.text)]
    if warned:
        return _warned(source, sum(message.count for message in warned), [message.line for message in warned], warned[0].text)
    if source.quotable:
        return None
    back = [series for run in records.runs(source) for series in run.series.values() if series.steps_back_count]
    if not back:
        return None
    worst = max(back, key=lambda series: series.steps_back_count)
    first = worst.steps_back[0]
    return Seen(
        title=f"steps go back {count(sum(s.steps_back_count for s in back), 'time')} in {count(back, 'name')}",
        evidence=[
            f"{s.name}: step {s.steps_back[0].before:,} then {s.steps_back[0].step:,}, {count(s.steps_back_count, 'time')}"
            for s in back[:4]
        ],
        severity="note" if worst.steps_back_count == 1 else "warning",
        step=first.step,
        statement="two counters, or one that starts anew, are used for the same axis",
        advice=["Use one counter for all calls (`trainsleuth.stepping.StepLogger`)."],
    )


def _warned(source: SourceRecord, times: int, lines: list[int], text: str) -> Seen:
    return Seen(
        title=f"the logger throws points away: steps do not increase ({count(times, 'warning')})",
        where=[records.spot(source, line, "the logger's warning") for line in lines[:2]],
        evidence=[
            f"line {lines[0]:,}: {text[:160]}",
            "W&B drops the whole call, all of its metrics, when its step is lower than the last",
        ],
        severity="warning",
        statement="several callers log with different counters (global step, batch index, epoch)",
        advice=[
            "Use one counter for all calls (`trainsleuth.stepping.StepLogger`); give validation a step of its own with `wandb.define_metric`.",
        ],
        certain=False,
        settle="which caller uses which counter: `trainsleuth run` notes the line of each call; the `.wandb` file lists what was lost",
    )
