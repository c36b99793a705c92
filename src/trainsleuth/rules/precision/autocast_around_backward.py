"""backward is called inside an autocast block.

What it detects
    Autocast was on when backward was called. It is a note, and a warning when an autograd function of the program's own computes
    its backward in 16 bit because of it: gradients of 32 bit go in, and what comes out is rounded to 16.
Why it matters
    PyTorch's own operations go back in the type that they went forward in, with or without autocast. Functions written by hand do not.
How it is confirmed
    By the state of autocast when backward begins, and by the digits of the gradients that go into and come out of such functions.
How to cure it
    End the autocast block after the loss; or decorate the functions with `custom_fwd` and `custom_bwd`.
When it is wrong
    Without own functions, or when theirs pass gradients on as they are, nothing is harmed; PyTorch's documentation merely advises
    against it.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule


@cause_rule("precision/autocast-around-backward", settled_by=("backward-outside-autocast",))
def rule(chart: ProcessChart) -> Verdict:
    if not chart.autocast_backwards:
        return None
    fact = next((fact for fact in chart.autocast_backwards if fact["rounded"]), chart.autocast_backwards[0])
    at, own = place(fact["at"]), fact["rounded"]
    return Seen(
        title=f"backward runs under autocast ({fact['dtype']})"
        + (f", and the backward of {', '.join(own[:3])} computes in 16 bit" if own else ""),
        where=[Spot(at, "inside the autocast block") if at else None],
        evidence=[
            f"autocast was on, with {fact['dtype']}, when backward began",
            *([f"gradients of 32 bit come out of the program's own {', '.join(own)} rounded to 16 bit"] if own else []),
        ],
        severity="warning" if own else "note",
        step=1,
        statement="the autocast block does not end before backward",
        advice=["End the autocast block after the loss: only forward and loss belong into it."],
    )
