"""The training diverged: loss and weights grew step by step until a number overflowed.

What it detects
    The first bad number is an overflow of ordinary arithmetic, or of the optimizer's own step, after the loss had grown far above its
    least value. It was visible before it broke: the finding says since when. From a log alone: the training loss ends far above its best
    and above where it began, and does not come back, or became NaN after such a rise.
Why it matters
    The operation that overflowed is innocent. Guarding it would only hide that the steps are too large.
How it is confirmed
    A trial with a tenth of the learning rate stays finite (knob `learning-rate-tenth`), or one whose rate does not grow
    (`learning-rate-held`), or one with a hundredth; another seed does not help.
How to cure it
    Lower the learning rate, warm it up, clip gradients (torch.nn.utils.clip_grad_norm_), normalise inputs and targets.
When it is wrong
    A loss that is huge by its nature may grow and come back; then it does not break. In a log, losses of games (GAN, reinforcement
    learning) are left out, warm restarts rise and come back, and losses that gain terms on the way look the same.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.record_chart import RunRecord, SourceRecord
from trainsleuth.case.series import Interval, Series
from trainsleuth.rules import records
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule, record_rule
from trainsleuth.rules.origins import CONSEQUENCES, SYMPTOMS, growth, judged
from trainsleuth.rules.wording import number

PARTS = 20


@cause_rule(
    "nan/diverged", explains=SYMPTOMS, masks=CONSEQUENCES,
    settled_by=("learning-rate-tenth", "learning-rate-held", "learning-rate-hundredth"),
)  # fmt: skip
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


@record_rule("nan/diverged", "cause", explains=("nan/loss-not-finite",))
def record(source: SourceRecord) -> Verdict:
    for run in records.runs(source):
        loss = run.main_loss()
        if loss is None or loss.count < PARTS:
            return Missing(f"{PARTS} finite values of the training loss")
        if records.in_a_game(run) or loss.least < 0:
            continue
        turned = _turned(loss)
        if turned is not None:
            return _seen(source, run, loss, *turned)
    return None


def _turned(loss: Series) -> tuple[Interval, float] | None:
    """The interval from which on the loss never came back, and its best level before."""
    parts = loss.segments(PARTS)
    best = min(parts)
    end = loss.intervals[-3:] if loss.broken_now else []
    before = max(parts[: PARTS * 7 // 10])
    ran = all(part > 3 * best and part > 1.5 * parts[0] and part > before for part in parts[-3:])
    blew = bool(end) and end[-1].mean > 3 * max(parts[0], 2 * best)
    if not ran and not blew:
        return None
    level = 2 * best
    turned = loss.intervals[-1]
    for interval in reversed(loss.intervals):
        if interval.mean < level:
            break
        turned = interval
    return turned, best


def _seen(source: SourceRecord, run: RunRecord, loss: Series, turned: Interval, best: float) -> Seen:
    after = loss.count - turned.to + turned.n
    evidence = [
        f"{loss.name}: best level {number(best)}, {number(loss.mean_between(0.95, 1.0))} at the end; above {number(2 * best)} "
        f"in the last {after:,} of {loss.count:,} values",
    ]
    for other in run.of_role("gradient", "rate"):
        early = [i for i in other.intervals if i.line < turned.line]
        if len(early) >= 3:
            usual = sorted(i.mean for i in early)[len(early) // 2]
            evidence.append(
                f"{other.name} was usually {number(usual)} before, {number(early[-1].mean)} at the turn, at most {number(other.most)} after"
            )
    return Seen(
        title=f"{loss.name} runs away from {records.at(turned)} on{records.of_run(source, run)}",
        where=[records.spot(source, turned.line, "from here on it never came back"), records.spot(source, loss.last_line, "the end")],
        evidence=evidence[:4],
        severity="critical",
        step=turned.step,
        statement="the steps are too large for where the model stood",
        advice=["Lower the learning rate or warm it up, clip the gradient norm, and start again from a checkpoint before the turn."],
        certain=False,
        settle="the same run with a tenth of the learning rate: if it does not turn, the step size was the cause",
    )
