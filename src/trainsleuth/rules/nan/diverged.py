"""The training diverged: loss and weights grew step by step until a number overflowed.

What it detects
    The first bad number is an overflow of ordinary arithmetic, or of the optimizer's own step, after the loss had grown far above its
    least value. It was visible before it broke: the finding says since when.
Why it matters
    The operation that overflowed is innocent. Guarding it would only hide that the steps are too large.
How it is confirmed
    A trial with a tenth of the learning rate stays finite (knob `learning-rate`); another seed does not help.
How to cure it
    Lower the learning rate, warm it up, clip gradients (torch.nn.utils.clip_grad_norm_), normalise inputs and targets.
When it is wrong
    A loss that is huge by its nature may grow and come back; then it does not break.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule
from trainsleuth.rules.origins import CONSEQUENCES, SYMPTOMS, growth, judged
from trainsleuth.rules.wording import number


@cause_rule("nan/diverged", explains=SYMPTOMS, settled_by=("learning-rate",), masks=CONSEQUENCES)
def rule(chart: ProcessChart) -> Verdict:
    seen = judged(
        chart,
        "diverged",
        "the training diverged: the steps are too large, and a number overflowed in the end",
        ["lower the learning rate (or warm it up), clip gradients, normalise inputs and targets"],
        note="overflowed here in the end",
    )
    if not isinstance(seen, Seen):
        return seen
    course = growth(chart)
    stride = max(1, len(course) // 6)
    shown = [*course[::stride][:6], *course[-1:]]
    optimizer = chart.main_optimizer()
    rates = f"; learning rate {number(optimizer.rates.last)} ({optimizer.kind})" if optimizer and optimizer.rates.points else ""
    lines = (
        [f"loss: {' → '.join(f'{number(value)} ({to:,})' for to, value in shown)} (backward){rates}"] if len(course) > 1 else []
    )
    where = [Spot(optimizer.at, "the optimizer and its learning rate")] if optimizer and optimizer.at else []
    return Seen(
        seen.title,
        [*where, *seen.where],
        [*lines, *seen.evidence],
        seen.severity,
        advice=seen.advice,
        step=seen.step,
    )
