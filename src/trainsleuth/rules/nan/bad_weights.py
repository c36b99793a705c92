"""The weights were not finite from the start: loaded so, or initialised so.

What it detects
    A parameter or buffer holds NaN or infinite numbers before the first step: when weights are loaded, or when the model is called
    for the first time.
Why it matters
    The checkpoint was written after the damage was done. Training from it cannot work, whatever the learning rate.
How it is confirmed
    The numbers themselves are the proof; they are counted once, when weights are loaded and when a model is first called.
How to cure it
    Go back to an older checkpoint, and check before saving. Where a buffer is bad (a running variance), it can be reset.
When it is wrong
    Buffers that hold -inf on purpose (masks) are not counted: only NaN in buffers is, and both in parameters.
"""

from trainsleuth.case.chart import ProcessChart, place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.origins import CONSEQUENCES, SYMPTOMS
from trainsleuth.rules.wording import count


@cause_rule("nan/bad-weights", explains=SYMPTOMS, masks=(*CONSEQUENCES, "nan/first-operation", "nan/diverged", "nan/bad-sample"))
def rule(chart: ProcessChart) -> Verdict:
    for fact in chart.bad_weights:
        names = [name for name, _ in fact["rows"]]
        numbers = sum(bad for _, bad in fact["rows"])
        loaded = fact["when"] == "loaded"
        at = place(fact["at"])
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        return Seen(
            title=f"the weights {'that were loaded' if loaded else 'of the model'} are not finite",
            where=[Spot(at, "loaded here" if loaded else "called here for the first time")] if at else [],
            evidence=[f"{count(numbers, 'number')} in {count(names, 'tensor')} of {fact['kind']}: {shown}"],
            advice=["go back to a checkpoint from before the damage; check torch.isfinite of the weights before saving"],
            step=0,
        )
    return None
