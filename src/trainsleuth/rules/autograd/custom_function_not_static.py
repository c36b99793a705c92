"""A custom autograd Function is written in the old form, with methods that are not static.

What it detects
    The program stopped with "Legacy autograd function with non-static forward method is deprecated".
Why it matters
    PyTorch has not run such functions for years. The error comes at the call, not at the class.
How it is confirmed
    The error itself is the proof; the line is the user's own line of the traceback.
How to cure it
    Make forward and backward static methods that take ctx as their first argument, keep what backward needs with
    ctx.save_for_backward, and call the class: MyFunction.apply(x) instead of MyFunction()(x).
When it is wrong
    Never.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.autograd_errors import error_of
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.mutations import SYMPTOMS, first_user_place


@cause_rule("autograd/custom-function-not-static", explains=SYMPTOMS, masks=("crash/known",))
def rule(chart: ProcessChart) -> Verdict:
    if error_of(chart.crash) != "not-static":
        return None
    lines = first_user_place(chart)
    return Seen(
        title="a custom autograd Function is written in the old form, which PyTorch no longer runs",
        where=[Spot(at, "called here" if index == 0 else "called from here") for index, at in enumerate(lines[:2])],
        evidence=["forward and backward of the Function are not static methods"],
        advice=["make forward and backward @staticmethods with ctx as their first argument, and call MyFunction.apply(…)"],
        step=chart.windows + 1,
    )
