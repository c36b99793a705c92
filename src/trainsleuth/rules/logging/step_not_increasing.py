"""Points are logged with a step that is lower than the last one.

What it detects
    In a record (TensorBoard, W&B, a table): steps of one name that go back. In a text log: the logger's own warning that steps must
    increase, and how often it came.
Why it matters
    W&B throws the whole call away, TensorBoard draws a line that runs back, and both without an error.
How it is confirmed
    By the steps, or by the logger's words.
How to cure it
    One counter for all calls: `trainsleuth.stepping.StepLogger`, or `wandb.define_metric` with a step of its own for validation.
When it is wrong
    A resumed run goes back to its checkpoint once: then it is a note. Text logs are read by people and may go back: silent.
"""

import re

from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.rules import counted, records
from trainsleuth.rules.kinds import Seen, Verdict, record_rule
from trainsleuth.rules.wording import count

WARNING = re.compile(
    r"(?i)steps? must be (?:strictly|monotonically)[\w -]* increasing|less than the current step|step .{0,40}lower than .{0,40}current step"
)


@record_rule("logging/step-not-increasing", "cause", structural=True)
def rule(source: SourceRecord) -> Verdict:
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
        evidence=[f"{s.name}: step {s.steps_back[0].before:,} then {s.steps_back[0].step:,}, {count(s.steps_back_count, 'time')}" for s in back[:4]],
        severity="note" if worst.steps_back_count == 1 else "warning",
        step=first.step,
        statement="two counters, or one that starts anew, are used for the same axis",
        advice=["Use one counter for all calls (`trainsleuth.stepping.StepLogger`)."],
    )


def _warned(source: SourceRecord, times: int, lines: list[int], text: str) -> Seen:
    return Seen(
        title=f"the logger throws points away: steps do not increase ({count(times, 'warning')})",
        where=[records.spot(source, line, "the logger's warning") for line in lines[:2]],
        evidence=[f"line {lines[0]:,}: {text[:160]}", "W&B drops the whole call, all of its metrics, when its step is lower than the last"],
        severity="warning",
        statement="several callers log with different counters (global step, batch index, epoch)",
        advice=[
            "Use one counter for all calls (`trainsleuth.stepping.StepLogger`); give validation a step of its own with `wandb.define_metric`.",
        ],
        certain=False,
        settle="which caller uses which counter: `trainsleuth run` notes the line of each call; the `.wandb` file lists what was lost",
    )
