"""Every class is predicted with the same probability, at every step.

What it detects
    The entropy of the predictions is that of a uniform guess over all C classes, from the first look to the last, and the loss
    does not move from ln C. The number is decoded: 0.3105 is ln 12 rounded to half precision, divided by 8 accumulation steps.
Why it matters
    The model says nothing about its input. The value of the loss alone tells how many classes it sees, what divides the loss,
    and in which precision it is computed.
How it is confirmed
    From the predictions at the loss call. Which fault makes them uniform is settled by the causes; if none is found, look at
    what scales the logits: a lost temperature or logit scale, features that are all equal, a head that never moves.
How to cure it
    Restore the scale of the logits (CLIP multiplies cosine similarities by about 100), or cure the cause that is named.
When it is wrong
    A head that is initialised with zeros is uniform at first; the rule waits until the loss had forty chances to move.
    A clamp or a floor may land near ln 10 by chance; the entropy of the predictions tells it apart.
"""

import math

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.decode import decode_known
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, symptom_rule
from trainsleuth.rules.standing import CLASS_LOSSES, standing
from trainsleuth.rules.wording import number


@symptom_rule("stall/uniform-predictions")
def rule(chart: ProcessChart) -> Verdict:
    now = standing(chart)
    if isinstance(now, str):
        return Missing(now)
    if now.calls.function not in CLASS_LOSSES or now.classes is None or now.uniform is None:
        return None
    entropies = now.calls.numbers("entropy")
    if len(entropies) < 3 or not now.still:
        return None
    share = min(entropies[-3:]) / math.log(now.classes)
    if share < 0.995 or abs(now.level - now.uniform) > 0.02 * now.uniform:
        return None
    reading = decode_known(now.curve.last, now.classes, int(now.divisor))
    sizes, spreads = now.calls.numbers("size"), now.calls.numbers("spread")
    logits = (
        f"logits of size {number(sizes[-1])} that differ by {number(spreads[-1])} between samples" if sizes and spreads else ""
    )
    words = f"{reading.words()}" if reading else f"near ln {now.classes}"
    flat_to_the_digit = now.curve.most - now.curve.least < 1e-6 * now.curve.most
    return Seen(
        title=f"loss {'fixed' if flat_to_the_digit else 'flat'} at {now.curve.last:.4f} = {words}: "
        f"{now.classes} equally likely classes",
        where=[Spot(now.calls.at, "the predictions that arrive here are uniform") if now.calls.at else None],
        evidence=[
            f"entropy of the predictions: {100 * share:.2f} % of ln {now.classes} in the last {min(3, len(entropies))} looks",
            f"{now.curve.count:,} values of the loss between {now.curve.least:.4f} and {now.curve.most:.4f}",
            *([f"at the loss: {logits}"] if logits else []),
            *([f"divided by {int(now.divisor)} before backward"] if now.divisor > 1 else []),
        ],
        severity="critical",
        statement="the logits are too small or too equal to tell classes apart",
        advice=["Look at what scales the logits: a temperature or logit scale that was lost, features that are all alike."],
        certain=True,
    )
