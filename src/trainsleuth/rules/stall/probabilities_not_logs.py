"""The loss wants logarithms of probabilities and is given the probabilities.

What it detects
    What reaches `nll_loss` lies between 0 and 1, and its rows sum to 1, in every look.
Why it matters
    The loss is then minus the probability of the right class: it is negative, its slope does not grow where the model is wrong, and it
    learns slowly, or little. No error is raised.
How it is confirmed
    By the values. The trial `softmax-dropped` takes their logarithm: the loss is positive, as a cross entropy is.
How to cure it
    `LogSoftmax` (or `F.log_softmax`) in the place of the softmax, or no softmax and `cross_entropy`.
When it is wrong
    Minus a probability can be meant as a loss; then it is better written out.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.stall.double_softmax import activation_places

LOOKS = 3


@cause_rule(
    "stall/probabilities-not-logs", settled_by=("softmax-dropped",), explains=("stall/flat-loss", "stall/uniform-predictions"),
    masks=("stall/inputs-and-targets-misaligned", "stall/vanishing-gradient", "stall/wrong-softmax-axis", "data/labels-out-of-range"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    for calls in chart.loss_calls.values():
        least, most, off = calls.numbers("least"), calls.numbers("most"), calls.numbers("row_sum_off")
        if calls.function != "nll_loss" or len(off) < LOOKS or len(off) < len(calls.samples) or int(calls.last.get("classes") or 0) < 2:
            continue
        if min(least) < 0 or max(off) > 1e-3:
            continue
        made = [Spot(at, "this softmax") for at in activation_places(chart, "Softmax")]
        return Seen(
            title="nll_loss expects logarithms of probabilities and gets the probabilities",
            where=[*made[:2], Spot(calls.at, "receives them here") if calls.at else None],
            evidence=[
                f"in all {len(off)} looks the rows sum to 1, values between {min(least):.3f} and {max(most):.3f}; a logarithm is below 0",
                f"so the loss is minus a probability: {calls.numbers('value')[-1]:.4f} in the last look",
            ],
            step=LOOKS,
            statement="the model ends in a softmax where the loss wants a log-softmax",
            advice=["Use log_softmax (nn.LogSoftmax), or leave the softmax out and use cross_entropy."],
            look_for="" if made else "softmax",
        )
    return None
