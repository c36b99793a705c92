"""A backward walked into a graph that an earlier backward had freed.

What it detects
    Backward stopped with "Trying to backward through the graph a second time". The finding names the line that made the old part of the
    graph, the line that still uses it, and the backward that freed it.
Why it matters
    Usually a tensor is carried from one step to the next with its whole history: the hidden state of a recurrent net, a running
    average of the loss, a term that is computed once before the loop. retain_graph=True silences the error and keeps
    the history growing.
How it is confirmed
    The program is run again in a sandbox; the nodes that each backward has passed are noted, with the lines that made them.
How to cure it
    Detach what is carried over (hidden = hidden.detach()), compute the shared term anew in each step, or add the losses and call
    backward once.
When it is wrong
    Not known to be.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.autograd_errors import error_of
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.mutations import SYMPTOMS, first_user_place, freed_of, missing, spots_of


@cause_rule("autograd/graph-freed", explains=SYMPTOMS, settled_by=("hidden-state-detached",), masks=("crash/known",))
def rule(chart: ProcessChart) -> Verdict:
    if error_of(chart.crash) != "graph-freed":
        return None
    fact = freed_of(chart)
    if fact is None or not fact.get("freed"):
        raised = first_user_place(chart)
        return missing(chart) if not raised else Seen(
            title="backward goes through a graph that an earlier backward has freed",
            where=[Spot(raised[0], "the backward that is refused")],
            evidence=["the line that keeps the old graph was not found"],
            advice=["detach what is carried from one step to the next, or add the losses and call backward once"],
            step=chart.windows + 1,
        )  # fmt: skip
    old = fact["freed"][0]
    carried = not fact.get("whole")
    where = []
    if carried:
        where += spots_of(old.get("used_at"), old.get("used_above"), "uses a result with its history")
    where += spots_of(old.get("made_at"), old.get("made_above"), "made here")
    where += spots_of(old.get("freed_at"), None, "this backward freed it")
    where += spots_of(fact.get("second"), None, "this backward is refused")
    ago = int(old.get("backwards_ago") or 1)
    made = f"{old['node'].split('Backward')[0]}{' of module ' + old['module'] if old.get('module') else ''}"
    return Seen(
        title="a result is used with its history, which an earlier backward has freed"
        if carried
        else "backward is called twice over the same graph",
        where=where,
        evidence=[
            f"the result of {made} belongs to a graph that was freed {ago} backward{'s' if ago > 1 else ''} before",
            f"found by running the program again in a sandbox ({fact.get('took', '?')} s)",
        ],
        advice=[
            "detach what is carried from one step to the next (hidden = hidden.detach()); do not keep history with retain_graph",
            "where both backwards belong to one step: add the losses and call backward once",
        ]
        if carried
        else ["add the losses and call backward once, or compute the shared part anew"],
        step=int(fact.get("windows") or 0) + 1,
    )
