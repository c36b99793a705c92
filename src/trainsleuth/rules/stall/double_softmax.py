"""Probabilities are fed to a loss that expects logits.

What it detects
    Cross entropy receives the output of a softmax, or BCE-with-logits that of a sigmoid: seen in the graph, and in the values (rows
    between 0 and 1 that sum to 1, in every look).
Why it matters
    The loss applies the function again. The gradients shrink, the loss cannot fall below ln(1 + (C - 1)/e), and training crawls.
How it is confirmed
    By the graph: the last operation before the loss is the softmax itself.
How to cure it
    Return logits from the model, and apply softmax only for display.
When it is wrong
    A log-softmax before cross entropy is idempotent and harmless: the rule is silent.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import LossCalls, Place, place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule

LOOKS = 3  # before rows that only look like probabilities are called that
SHAPE_ONLY = ("View", "Reshape", "Unsafe", "Squeeze", "Unsqueeze", "Permute", "Transpose", "Select", "Slice", "ToCopy", "Clone")


@cause_rule(
    "stall/double-softmax", settled_by=("softmax-dropped",), explains=("stall/flat-loss", "stall/uniform-predictions"),
    masks=("stall/inputs-and-targets-misaligned", "stall/vanishing-gradient"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    for calls in chart.loss_calls.values():
        wanted = {"cross_entropy": ("Softmax", "softmax"), "binary_cross_entropy_with_logits": ("Sigmoid", "sigmoid")}.get(
            calls.function
        )
        if wanted is None or len(calls.samples) < 2:
            continue
        makers = [_real_maker(sample["made_by"]) for sample in calls.samples[-3:]]
        in_graph = all(maker.startswith(wanted[0]) for maker in makers)
        if not in_graph and not _sum_to_one(calls):
            continue
        least, most = calls.numbers("least") or calls.numbers("input_least"), calls.numbers("most") or calls.numbers("input_most")
        made = [Spot(p, f"this {wanted[1]}") for p in activation_places(chart, wanted[0])]
        return Seen(
            title=f"{wanted[1]} is applied twice: {calls.function} expects logits and gets probabilities",
            where=[*made[:2], Spot(calls.at, f"applies {wanted[1]} again") if calls.at else None],
            evidence=[
                f"the operation right before the loss is {makers[-1]}"
                if in_graph
                else f"in all {len(calls.samples)} looks the rows lie between 0 and 1 and sum to 1: they are probabilities, however they were made",
                *([f"values between {min(least):.3f} and {max(most):.3f} in every look"] if least and most else []),
            ],
            step=2,
            statement=f"the model ends in a {wanted[1]}, and the loss applies it again",
            advice=[f"Return logits from the model; apply {wanted[1]} only where you show probabilities."],
            look_for="" if made else wanted[1],
        )
    return None


def _sum_to_one(calls: LossCalls) -> bool:
    """Rows of probabilities, in every look: what a mean of several softmaxes gives, too."""
    off, least = calls.numbers("row_sum_off"), calls.numbers("least")
    many = len(calls.samples) >= LOOKS and calls.last.get("classes", 0) >= 2
    return calls.function == "cross_entropy" and many and len(off) == len(calls.samples) and max(off) < 1e-3 and min(least) >= 0


def _real_maker(names: list[str]) -> str:
    return next((name for name in names if not name.startswith(SHAPE_ONLY)), "")


def activation_places(chart: ProcessChart, kind: str) -> list[Place]:
    """Where the activation modules were called, and where they were built."""
    found: list[Place] = []
    for fact in chart.deep[-1:]:
        for row in fact["calls"]:
            model = chart.models.get(row[16] or "")
            if row[3] == kind:
                found += [at for at in (place(row[4]), model.made.get(row[2]) if model else None) if at is not None]
    return found
