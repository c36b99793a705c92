"""A schedule that knows its length is stepped more often than that, and raises.

What it detects
    The exception of `OneCycleLR` at the step behind its last one, the line that made the schedule, and how many batches a pass really has.
Why it matters
    The run dies near its end. Most often its length was computed by a floor division, and each pass has one batch more, which is not full.
How it is confirmed
    By the exception. A trial in which the schedule keeps its last rate goes on (knob `schedule-holds`).
How to cure it
    Round up (`len(loader)`, `math.ceil`, Lightning's `trainer.estimated_stepping_batches`), or step the schedule once per optimizer step only.
When it is wrong
    Never in what it says; that the length is too small, and not the number of steps too large, is up to the program.
"""

import re

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.mutations import first_user_place
from trainsleuth.rules.wording import count

SAID = re.compile(r"Tried to step (\d+) times\. The specified number of total steps is (\d+)")


@cause_rule("schedule/ends-before-the-run", explains=("crash/exception",), settled_by=("schedule-holds",), masks=("crash/known",))
def rule(chart: ProcessChart) -> Verdict:
    said = SAID.search(str((chart.crash or {}).get("message", "")))
    if said is None:
        return None
    total = int(said[2])
    made = next((each for each in chart.schedulers.values() if each.about["settings"].get("total_steps") == total), None)
    raised = first_user_place(chart)
    lengths = {loader.about.get("length") for loader in chart.loaders.values() if len(loader.passes) > 1} - {None, 0}
    length = lengths.pop() if len(lengths) == 1 else None
    return Seen(
        title=f"the schedule was made for {count(total, 'step')}, and the run makes more",
        where=[
            Spot(made.at, f"made for {count(total, 'step')}") if made is not None and made.at else None,
            *[Spot(at, "raised here" if index == 0 else "called from here") for index, at in enumerate(raised[:2])],
        ],
        evidence=[
            said[0],
            *([f"a pass over the loader has {length:,} batches, so {total:,} steps are {total // length} passes and {total % length} batches"]
              if length else []),
        ],
        step=chart.windows + 1,
        statement="the length that the schedule was given is too small for the steps that the run makes",
        advice=["Round up when batches are counted: len(loader), or math.ceil(samples / batch_size); the last batch that is not full counts."],
    )  # fmt: skip
