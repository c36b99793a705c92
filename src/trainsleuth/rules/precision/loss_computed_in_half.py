"""The loss itself is computed in 16 bit.

What it detects
    A loss function is given 16 bit and answers in 16 bit. The same loss of the same values is computed in 32 bit beside it: critical when
    only the one of 16 bit is infinite, a warning when they differ by more than rounding would explain, else a note.
Why it matters
    Sums and squares of a loss leave the range of float16 at 65,504, and bfloat16 has two to three digits: the curve moves in steps, and
    whoever reads it (early stopping, schedules on plateaus) is misled.
How it is confirmed
    By the two values side by side.
How to cure it
    `criterion(output.float(), target)`, or compute the loss inside the autocast block, which takes it to 32 bit.
When it is wrong
    Most models bear a loss of 16 bit. Without a measured difference it is a note.
"""

import math

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import LossCalls, place
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import number

HALF = ("float16", "bfloat16")
ENOUGH = 3
TOO_FAR = 0.02
Pair = tuple[float, float]  # in 16 bit, in 32 bit


@cause_rule(
    "precision/loss-computed-in-half", settled_by=("loss-in-32-bits",),
    explains=("nan/loss-not-finite",), masks=("data/not-normalised", "nan/half-overflow"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    for calls in sorted(chart.loss_calls.values(), key=lambda calls: -calls.seen):
        if calls.last["result_dtype"] not in HALF:
            continue
        pairs = _pairs(calls)
        if len(pairs) < ENOUGH:
            return Missing("three looks at the loss in 16 and in 32 bit")
        overflowed = [pair for pair in pairs if not math.isfinite(pair[0])]
        level = max(abs(full) for _, full in pairs)
        far = [pair for pair in pairs if abs(pair[0] - pair[1]) > TOO_FAR * max(abs(pair[1]), 0.1 * level)]
        harmed, off = 2 * len(overflowed) >= len(pairs), 2 * len(far) >= len(pairs)
        half, full = (overflowed or far or pairs)[-1]
        dtype = calls.last["result_dtype"]
        return Seen(
            title=f"{calls.function} is computed in {dtype}"
            + (f" and gives {_said(half)} where 32 bit gives {number(full)}" if harmed or off else ""),
            where=[Spot(calls.at, f"gets {calls.last['dtype']}, answers in {dtype}") if calls.at else None],
            evidence=[
                f"the same loss of the same values: {_said(half)} in {dtype}, {number(full)} in 32 bit",
                f"not finite in {len(overflowed)} and off by more than {100 * TOO_FAR:.0f} % in {len(far)} of {len(pairs)} looks",
                *([] if calls.last["autocast"] else ["autocast is off where the loss is computed"]),
            ],
            severity="critical" if harmed else "warning" if off else "note",
            step=calls.samples[0]["window"],
            statement="16 bit do not hold the loss",
            advice=["Give the loss function 32 bit: `criterion(output.float(), target)`."],
        )
    for fact in chart.half_losses:
        at = place(fact["at"])
        return Seen(
            title=f"the loss that is back-propagated is {fact['dtype']}",
            where=[Spot(at, "a loss of 16 bit") if at else None],
            evidence=[f"its type is {fact['dtype']}: {'three' if fact['dtype'] == 'float16' else 'two to three'} digits"],
            severity="note",
            statement="the loss is computed in 16 bit",
            advice=["Take the model's output to 32 bit (`.float()`) before the loss is computed."],
        )
    return None


def _pairs(calls: LossCalls) -> list[Pair]:
    found = ((sample["numbers"].get("value"), sample["numbers"].get("in_full")) for sample in calls.samples)
    return [(half, full) for half, full in found if half is not None and full is not None and math.isfinite(full)]


def _said(value: float) -> str:
    return number(value) if math.isfinite(value) else "NaN" if math.isnan(value) else "infinity"
