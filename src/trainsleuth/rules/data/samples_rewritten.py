"""Reading a sample changes what the data set keeps of it: the data wear away from epoch to epoch.

What it detects
    While a loader read a sample, the numbers that the data set keeps of it changed; they were still changed when it was read again, and
    that reading changed them once more.
Why it matters
    `torch.from_numpy(store[i])`, `torch.as_tensor` and `tensor[i]` are views. A transform that works in place on one (`sub_`, `fill_`, `x -= mean`,
    a mask) works on the store itself: each epoch masks, shifts or scales what the epochs before have masked, shifted or scaled.
How it is confirmed
    By the stored numbers before and after each reading. A trial puts them back after each batch (knob `samples-kept`).
How to cure it
    Give the transform a copy: `.clone()`, `.copy()`, or use operations that do not work in place.
When it is wrong
    A cache that is filled, or a sample that is prepared once when it is first read, changes once: silent. Counters and weights of samples are
    too few numbers to be looked at.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.standing import standing
from trainsleuth.rules.wording import number, percent


@cause_rule(
    "data/samples-rewritten", explains=("stall/flat-loss", "stall/uniform-predictions"), settled_by=("samples-kept",),
    masks=("stall/inputs-and-targets-misaligned", "data/not-normalised"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    if not chart.samples_rewritten:
        return None
    fact, now = chart.samples_rewritten[-1], standing(chart)
    at = place(fact["read_at"])
    return Seen(
        title=f"reading a sample of {fact['dataset']} changes it where it is stored, each time once more",
        where=[Spot(at, "the sample is read here", function=True) if at else None],
        evidence=[
            f"kept in `{fact['field']}` ({fact['kind']}): reading number {fact['readings']} of a sample changed {percent(fact['share'])} "
            f"of its numbers once more, from {_range(fact['before'])} to {_range(fact['after'])}",
            "an earlier reading had changed the same sample, and that was still so",
        ],
        severity="critical" if not isinstance(now, str) and now.stuck else "warning",
        step=fact["windows"] + 1,
        statement="what is read is a view of the stored sample, and something works on it in place",
        advice=["Copy the sample before it is transformed: .clone() or .copy()."],
    )


def _range(ends: list[float]) -> str:
    return f"{number(ends[0])} … {number(ends[1])}"
