"""A checkpointed function draws random numbers that backward cannot draw again.

What it detects
    Python's or numpy's random state has moved while torch.utils.checkpoint ran a function (or torch's own, with
    preserve_rng_state=False). In backward the function is run a second time, and then it draws other numbers.
Why it matters
    The recomputed activations are not those that the loss was computed from. With luck their shapes differ and PyTorch raises
    CheckpointError; otherwise the gradients are silently wrong.
How it is confirmed
    The random states before and after the call are compared; that the second run does not get the first one's state back is how
    checkpointing works.
How to cure it
    Draw the number with torch inside the function (torch.rand(()) < p), or outside of it and pass it in as an argument.
When it is wrong
    Random numbers that do not touch the result (for logging, say) do no harm. While a thread of the program's own runs beside it, nothing is
    said: that thread may have drawn them.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.autograd_errors import error_of
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule


@cause_rule(
    "checkpoint/random-inside", explains=("crash/exception",), settled_by=("checkpointing-off",), masks=("autograd/modified-in-place", "crash/known"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    if not chart.checkpoint_random:
        return None
    fact = chart.checkpoint_random[0]
    raised = error_of(chart.crash) == "checkpoint"
    generators = " and ".join(fact["drawn"])
    inside = place(fact.get("function"))
    where = [Spot(at, "the function that draws them", function=True) for at in [inside] if at]
    where += [Spot(at, "checkpointed here") for at in [place(fact["at"])] if at]
    return Seen(
        title=f"a checkpointed function draws random numbers from {generators}, which backward cannot draw again",
        where=where,
        evidence=[
            f"the random state of {generators} moved during the checkpointed forward; it is not put back for the second run in backward",
            "PyTorch noticed that the second run differs"
            if raised
            else "nothing is raised where shapes agree: the gradients are wrong",
        ],
        advice=[
            "let the checkpoint put torch's random state back, as it does unless preserve_rng_state=False"
            if fact["drawn"] == ["torch"]
            else "draw with torch inside the function (torch.rand(()) < p), or draw outside and pass the number in"
        ],
        step=int(fact.get("windows") or 0) + 1,
        look_for="random",
    )
