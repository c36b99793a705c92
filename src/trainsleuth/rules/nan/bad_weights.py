"""The weights were not finite from the start: loaded so, or initialised so.

What it detects
    A parameter or buffer holds NaN or infinite numbers before the first step: when weights are loaded, or when the model is called
    for the first time.
Why it matters
    The checkpoint was written after the damage was done. Training from it cannot work, whatever the learning rate.
How it is confirmed
    The numbers themselves; they are counted once, when weights are loaded and when a model is first called. A trial in which they are
    replaced before the first step stays finite (knob `finite-weights`).
How to cure it
    Go back to an older checkpoint, and check before saving. Where a buffer is bad (a running variance), it can be reset.
When it is wrong
    What is not trained may hold -inf on purpose (masks): there only NaN counts. Bad numbers that no loss ever met (a row of an embedding that
    is never looked up) are a note.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.origins import CONSEQUENCES, KINDS, SYMPTOMS, went_bad
from trainsleuth.rules.wording import count


@cause_rule("nan/bad-weights", explains=SYMPTOMS, settled_by=("finite-weights",), masks=(*CONSEQUENCES, *KINDS))
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
            severity="critical" if went_bad(chart) else "note",
            step=0,
        )
    return None
