"""The backward of the program's own autograd Function does not fit its forward.

What it detects
    At inputs that the program really gave, the derivative of forward, measured by two forwards close to each other, differs from what
    backward claims, along nearly every direction that was tried.
Why it matters
    Everything before this Function in the model learns from a wrong gradient: it trains, badly, and nothing is raised.
How it is confirmed
    The program is run again in a sandbox for its first steps; each Function of the program's own is checked in double precision.
    The trial `backward-by-autograd` then lets autograd derive it, and compares the losses number by number.
How to cure it
    Derive backward anew, and keep torch.autograd.gradcheck beside the Function as a test. Where no special kernel is needed, plain
    operations and autograd do the same.
When it is wrong
    Some Functions disagree on purpose. Those that give their input back (gradient reversal) and those with steps (rounding, spikes: the
    straight-through estimator) are left alone; a smooth forward with a deliberately different backward is not known to be meant.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.wording import number


@cause_rule("autograd/custom-backward-wrong", explains=("stall/flat-loss",), settled_by=("backward-by-autograd",))
def rule(chart: ProcessChart) -> Verdict:
    if not chart.functions:
        return None
    results = [row for fact in chart.examined if fact.get("result") == "functions" for row in fact.get("functions") or []]
    if not results:
        why = next((fact.get("why") for fact in chart.examined if fact.get("looked_for") == "functions"), None)
        return Missing(f"a check of the program's own autograd Functions ({why or 'trainsleuth prove runs one'})")
    wrong = next((row for row in results if row.get("verdict") == "wrong"), None)
    if wrong is None:
        return None
    factor = wrong.get("factor")
    pairs = "; ".join(f"{number(claimed)} instead of {number(measured)}" for measured, claimed in wrong["pairs"][:3])
    named = next((fact["backward"] for fact in chart.functions if fact["name"] == wrong["name"]), None)
    index = int(wrong["inputs"][0])
    spots = ((wrong["backward"], f"what backward gives back for input {index}"), (named, "this backward"), (wrong["forward"], "of this forward"))
    where = [
        Spot(at, note, function=row is named, returned=index if row is wrong["backward"] else None) for row, note in spots if (at := place(row))
    ]  # fmt: skip
    return Seen(
        title=f"the backward of {wrong['name']} does not fit its forward"
        + (f": it is off by the factor {number(factor)}" if factor is not None else ""),
        where=where,
        evidence=[
            f"slope along random directions of input {', '.join(map(str, wrong['inputs']))}: backward says {pairs} (measured)",
            "checked in double precision at inputs of the program's own, in a sandbox",
        ],
        severity="warning",
        advice=["derive backward anew and test it with torch.autograd.gradcheck; if the difference is meant, ignore this"],
        step=1,
    )
