"""A random sample is drawn in a way that no gradient passes, and nothing makes up for it.

What it detects
    In each look the program draws from a distribution whose parameters are trained by `sample()`, which cuts the graph, though the
    distribution could reparameterise (`rsample()`), gives that sample to a layer that the loss hangs on, and never asks for its `log_prob`.
Why it matters
    What comes behind the sample teaches nothing to what comes before it. In a variational autoencoder the encoder then learns from the
    divergence alone, and its code says nothing about the input.
How it is confirmed
    By the call, in every deep window. A trial draws by `rsample()` at that line (knob `reparameterised`): the loss falls further.
How to cure it
    `rsample()` instead of `sample()`.
When it is wrong
    Policy gradients draw by `sample()` and weigh the `log_prob` of what was drawn; nothing is said of them. A sample that is drawn to be shown only
    does no harm, and then the trial refutes this.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule

LOOKS = 3


@cause_rule("stall/sample-without-gradient", explains=("stall/flat-loss",), settled_by=("reparameterised",))
def rule(chart: ProcessChart) -> Verdict:
    looks = [fact for fact in chart.deep if fact.get("calls")]
    drawn = [fact for fact in looks if any(row[2] for row in fact.get("drawn") or [])]
    if len(drawn) < LOOKS or len(drawn) < 0.8 * len(looks) or any(fact.get("scored") for fact in looks):
        return None
    row, kind, *_ = next(row for row in drawn[-1]["drawn"] if row[2])
    at = place(row)
    return Seen(
        title=f"a sample of {kind} is drawn without gradients, and nothing makes up for it",
        where=[Spot(at, "sample() cuts the graph here; rsample() would not") if at else None],
        evidence=[
            f"in {len(drawn)} of {len(looks)} looks; the parameters of this {kind} are computed by layers that are trained",
            "the program never asks for the log_prob of that sample, as policy gradients do",
        ],
        severity="warning",
        step=LOOKS,
        statement="sample() is called where rsample() is meant",
        advice=["Draw by `rsample()`: the same numbers, with the way back to the parameters."],
        certain=False,
    )  # fmt: skip
