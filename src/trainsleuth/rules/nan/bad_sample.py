"""The data holds NaN or infinite numbers.

What it detects
    The first bad number was there already when the program used it for the first time, and it is data: a sample of the data set,
    named by its index and its file where these can be known, or rows of a tensor.
Why it matters
    One sample among thousands is enough: the batch's loss is NaN, and after the step all weights are. With shuffling it happens at
    another step each time, which looks like chance.
How it is confirmed
    The program is run again in a sandbox, from the same random numbers. Each batch is looked at before the program sees it.
How to cure it
    Repair or drop the sample. Check the data when it is read: assert torch.isfinite(x).all(), with the sample's name in the message.
When it is wrong
    Missing values that the program masks out before it uses them do not reach the loss, and are not blamed.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Place, place
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.origins import CONSEQUENCES, SYMPTOMS, judged, origin_of


@cause_rule("nan/bad-sample", explains=SYMPTOMS, settled_by=("bad-sample-dropped",), masks=CONSEQUENCES)
def rule(chart: ProcessChart) -> Verdict:
    seen = judged(
        chart,
        "bad-sample",
        "the data holds numbers that are not finite",
        ["repair or drop the sample; check with torch.isfinite when data is read, and name the sample in the message"],
        note="first used here",
    )
    origin = origin_of(chart)
    if not isinstance(seen, Seen) or origin is None:
        return seen
    role = origin.role
    samples = [row for row in role.get("indices") or [] if isinstance(row, list)]
    if samples:
        title = f"sample {samples[0][0]} of the data set holds numbers that are not finite"
        named = ", ".join(f"{index}{f' ({file})' if file else ''}" for index, file in samples[:4])
        line = f"bad samples in that batch: {named}; field {role.get('field', '0')} of what {role.get('dataset', 'the data set')} gives"
    else:
        title = seen.title
        rows = origin.about.get("rows") or []
        line = (
            f"bad entries along the first dimension: {', '.join(map(str, rows[:8]))}{' …' if len(rows) > 8 else ''}"
            if rows
            else ""
        )
    where: list[Spot | Place | None] = list(seen.where)
    read_at = place(role.get("read_at"))
    made = role.get("made") or {}
    made_at = place(made.get("at"))
    if made_at is not None:
        where.insert(0, Spot(made_at, _made_by(str(made["op"]))))
    elif read_at is not None:
        where.insert(0, Spot(read_at, "the sample is read here", function=True))
    evidence = [seen.evidence[0], *([line] if line else []), *seen.evidence[1:]]
    return Seen(title, where, evidence, seen.severity, advice=seen.advice, step=seen.step)


def _made_by(operation: str) -> str:
    name = operation.removeprefix("aten.").split(".")[0]
    return "here bad numbers are seen for the first time" if name == "given" else f"{name} makes the bad number here"
