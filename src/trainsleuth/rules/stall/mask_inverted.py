"""A padding mask the wrong way round: attention looks at the padding, and at nothing else.

What it detects
    In every look an attention or transformer encoder of torch's is given a boolean padding mask whose kept places are the same for all
    samples, while those that it hides differ between samples.
Why it matters
    In torch a mask is True where attention must *not* look. Masks of tokenizers are 1 where it should (`attention_mask`). Given as it is,
    it hides every real token, and the model sees padding: the loss stands at the level of guessing, or lives on the lengths alone.
How it is confirmed
    By what is kept and what is hidden; and by a trial with the mask the other way round (knob `mask-inverted`).
How to cure it
    `src_key_padding_mask=~mask`, or `mask == 0`.
When it is wrong
    Padding whose places differ between samples (by dropout, say) is not recognised: silent.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import number, percent

EQUAL, DIFFERENT = 1e-6, 0.05  # of the size of what the module is given
LOOKS = 2


@cause_rule(
    "stall/mask-inverted", explains=("stall/flat-loss", "stall/uniform-predictions"), settled_by=("mask-inverted",),
    masks=("stall/input-ignored", "stall/inputs-and-targets-misaligned"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    looks = [fact["values"] for fact in chart.masked if fact["values"][3] > 0]
    if len(looks) < LOOKS:
        return None
    for kept, hidden, size, _ in looks:
        if not 0 <= kept <= EQUAL * size or hidden < DIFFERENT * size:
            return None
    fact = next(fact for fact in reversed(chart.masked) if fact["values"][3] > 0)
    kept, hidden, size, share = fact["values"]
    at = place(fact["at"])
    return Seen(
        title="a padding mask is the wrong way round: attention sees the padding, and nothing else",
        where=[Spot(at, f"this mask hides {percent(share)} of the places from the {fact['kind']}") if at else None],
        evidence=[
            f"in {len(looks)} of {len(looks)} looks what is kept is the same for all samples (spread {number(kept)}), and what is hidden differs "
            f"(spread {number(hidden)}, at a size of {number(size)})",
            "in torch a mask is True where attention must not look",
        ],
        step=3,
        statement="the mask says where the real places are, and torch takes it for where the padding is",
        advice=["Give the mask the other way round: ~mask, or mask == 0."],
    )
