"""Predictions and targets of different shapes are broadcast against each other.

What it detects
    A loss compares (B, 1) with (B,): every prediction with every target, B x B pairs. For torch's losses from the shapes they
    receive; for a loss written by hand from the graph: a difference of shape (B, B) one side of which is the model's (B, 1).
Why it matters
    The best answer to all targets at once is their mean: the model learns a constant, and the loss stops at the variance.
How it is confirmed
    By the shapes.
How to cure it
    `prediction.squeeze(-1)`, or `target.unsqueeze(-1)`.
When it is wrong
    Pairwise losses make the extra axis themselves, with unsqueeze, view or None: then the rule is silent.
"""

from typing import Any

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule

BY_HAND = ("SubBackward", "RsubBackward", "MulBackward", "DivBackward", "AddBackward")
MADE_ON_PURPOSE = ("Unsqueeze", "View", "Reshape", "UnsafeView", "Index", "Expand", "TBackward", "Transpose", "Permute")


@cause_rule(
    "stall/shape-broadcast", settled_by=("same-shape-loss",),
    explains=("stall/flat-loss",), masks=("stall/inputs-and-targets-misaligned", "stall/input-ignored"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    for calls in chart.loss_calls.values():
        if not calls.samples or calls.last.get("target_kind") != "value":
            continue
        left, right = calls.last["input_shape"], calls.last["target_shape"]
        if blown_up(left, right):
            return _seen(left, right, [Spot(calls.at, "compares every prediction with every target") if calls.at else None])
    for fact in chart.deep:
        pair = _by_hand(fact["chain"])
        if pair is not None:
            made = next((place(row[0]) for row in fact.get("pairs") or [] if sorted(row[1:]) == sorted(pair)), None)
            at = place(fact["at"])
            spots = [
                Spot(made, "compares every prediction with every target") if made else None,
                Spot(at, "back-propagates a loss over all pairs") if at else None,
            ]
            return _seen(pair[0], pair[1], spots, look_for="" if made else "difference")
    return None


def blown_up(left: list[int], right: list[int]) -> bool:
    """Whether broadcasting makes more pairs than either side has elements."""
    if left == right or not left or not right:
        return False
    width = max(len(left), len(right))
    a, b = [1] * (width - len(left)) + left, [1] * (width - len(right)) + right
    result = [max(x, y) for x, y in zip(a, b)]
    return result != a and result != b


def _by_hand(chain: list[list[Any]]) -> tuple[list[int], list[int]] | None:
    for index, (name, shape, _, _) in enumerate(chain):
        if not name.startswith(BY_HAND) or not shape or len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
            continue
        sides = [row for row in chain if row[2] == index]
        if len(sides) != 1 or not _reduced_at_once(chain, index, shape):
            continue
        maker, side = sides[0][0], sides[0][1]
        if side == [shape[0]] or (side == [shape[0], 1] and not maker.startswith(MADE_ON_PURPOSE)):
            return side, [shape[0], 1] if len(side) == 1 else [shape[0]]
    return None


def _reduced_at_once(chain: list[list[Any]], index: int, shape: list[int]) -> bool:
    """Whether nothing happens to the pairs but arithmetic and the final mean or sum."""
    user = chain[index][2]
    while user >= 0:
        if chain[user][1] not in (shape, []):
            return False
        user = chain[user][2]
    return True


def _seen(left: list[int], right: list[int], where: Any, look_for: str = "") -> Seen:
    return Seen(
        title=f"predictions {tuple(left)} and targets {tuple(right)} are broadcast to all pairs",
        where=where,
        evidence=[f"shapes {tuple(left)} and {tuple(right)}: {max(left) * max(right):,} differences instead of {max(left)}"],
        step=1,
        statement="the loss compares each prediction with the targets of all samples",
        advice=["`prediction.squeeze(-1)` before the loss, or `target.unsqueeze(-1)`."],
        look_for=look_for,
    )
