"""Weights are kept and loaded again, and what was kept is the live weights themselves: nothing comes back.

What it detects
    `load_state_dict` was given a state dict of the same module whose tensors are the module's own parameters, not copies, and these have
    changed since `state_dict()` was called.
Why it matters
    `state_dict()` hands out references. The best weights that were kept follow every further step; a stash that should come back after a
    validation with averaged weights holds the average. Loading it copies each parameter into itself, and raises nothing.
How it is confirmed
    By the memory of the tensors. A trial in which that line gets copies (knob `state-copied`).
How to cure it
    `copy.deepcopy(model.state_dict())`, or a clone of each tensor.
When it is wrong
    Loading a module's own state right away, unchanged, is superfluous and harmless: silent.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.standing import standing


@cause_rule(
    "checkpoint/restores-nothing", explains=("stall/flat-loss", "stall/uniform-predictions"), settled_by=("state-copied",),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    if not chart.loaded_itself:
        return None
    fact, now = chart.loaded_itself[0], standing(chart)
    at, kept_at = place(fact["at"]), place(fact["kept_at"])
    times = len(chart.loaded_itself)
    return Seen(
        title=f"the weights of {fact['kind']} that were kept are its live weights: loading them brings nothing back",
        where=[
            Spot(kept_at, "keeps references, which every later change changes, too") if kept_at else None,
            Spot(at, "loads each weight into itself") if at else None,
        ],
        evidence=[
            f"after {fact['windows']:,} steps all {fact['tensors']} tensors that were loaded lay in the memory of the module's own parameters",
            "they had changed since they were kept" + (f"; so it was {times} times" if times > 1 else ""),
        ],
        severity="critical" if not isinstance(now, str) and now.stuck else "warning",
        step=fact["windows"] + 1,
        statement="state_dict() hands out the weights themselves, not a copy",
        advice=["Keep copy.deepcopy(model.state_dict()), or a clone of each tensor."],
    )
