"""The loss runs away.

What it detects
    In a log: the training loss ends far above its best and above where it began, and does not come back; or it became NaN after such a
    rise. The finding says since when it could be seen.
Why it matters
    All steps after the turning point are lost, and a checkpoint of the end is worse than none.
How it is confirmed
    From the course alone it is a symptom with a suspicion: a step that is too large. A run with a tenth of the learning rate that does
    not turn confirms it.
How to cure it
    Lower the learning rate, warm it up, clip the gradient norm; go back to the checkpoint before the turning point.
When it is wrong
    Losses of games (GAN, reinforcement learning) and losses that gain terms on the way rise without being sick; the first are left out,
    the second look the same. Warm restarts rise and come back: silent.
"""

from trainsleuth.case.record_chart import RunRecord, SourceRecord
from trainsleuth.case.series import Interval, Series
from trainsleuth.rules import records
from trainsleuth.rules.kinds import Missing, Seen, Verdict, record_rule
from trainsleuth.rules.wording import number

PARTS = 20


@record_rule("nan/diverged", "cause", explains=("nan/loss-not-finite",))
def rule(source: SourceRecord) -> Verdict:
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
