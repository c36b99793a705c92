"""backward is called inside an autocast block.

What it detects
    Autocast was on when backward was called. It is a note, and a warning when the graph holds autograd functions of the program's own:
    their backward then computes in 16 bit what their forward may have computed in 32.
Why it matters
    PyTorch's own operations go back in the type that they went forward in, with or without autocast. Functions written by hand do not.
How it is confirmed
    By the state of autocast when backward begins, and by the nodes of the graph.
How to cure it
    End the autocast block after the loss; or decorate the functions with `custom_fwd` and `custom_bwd`.
When it is wrong
    Without own functions nothing is harmed; PyTorch's documentation merely advises against it.
"""

from trainsleuth.case.chart import ProcessChart, place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule


@cause_rule("precision/autocast-around-backward")
def rule(chart: ProcessChart) -> Verdict:
    if not chart.autocast_backwards:
        return None
    fact = next((fact for fact in chart.autocast_backwards if fact["own"]), chart.autocast_backwards[0])
    at, own = place(fact["at"]), fact["own"]
    return Seen(
        title=f"backward runs under autocast ({fact['dtype']})"
        + (f", and the backward of {', '.join(own[:3])} computes in 16 bit" if own else ""),
        where=[Spot(at, "inside the autocast block") if at else None],
        evidence=[
            f"autocast was on, with {fact['dtype']}, when backward began",
            *([f"functions of the program's own in the graph, without custom_bwd: {', '.join(own)}"] if own else []),
        ],
        severity="warning" if own else "note",
        step=1,
        statement="the autocast block does not end before backward",
        advice=["End the autocast block after the loss: only forward and loss belong into it."],
    )
