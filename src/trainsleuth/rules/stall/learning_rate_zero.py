"""The optimizer steps with a learning rate of zero.

What it detects
    The learning rate of every group was 0 in every window so far. Without a scheduler three windows suffice; with one, the
    scheduler must have stepped three times or the run must have ended. From a log: it is printed as zero in every line, with enough
    digits, or the loss is flat to the digit beside it.
Why it matters
    Every step is made, and moves nothing.
How it is confirmed
    By the weights: the update was exactly 0.
How to cure it
    Follow the value: integer division (`lr * batch // 256`), a decay factor applied once too often, a lambda that returns an int.
When it is wrong
    A warm-up that begins at 0 leaves it after its first step; the rule waits for that.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Optimizer
from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.rules import records
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule, record_rule
from trainsleuth.rules.standing import standing
from trainsleuth.rules.wording import count, elements, names, percent


@cause_rule(
    "stall/learning-rate-zero", settled_by=("constant-learning-rate",), explains=("stall/flat-loss", "stall/uniform-predictions"),
    masks=("schedule/warmup-never-ends", "stall/params-frozen", "stall/inputs-and-targets-misaligned"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    optimizer = chart.main_optimizer()
    if optimizer is None or optimizer.windows < 3 or not optimizer.rates.points:
        return Missing("three windows with a step")
    if optimizer.rates.most != 0:
        return _of_a_group(chart, optimizer)
    schedulers = [s for s in chart.schedulers.values() if s.optimizer == optimizer.id]
    if schedulers and not chart.ended and max((len(s.steps) for s in schedulers), default=0) < 3:
        return Missing("three steps of the scheduler, which may raise the learning rate yet")
    held = [chart.parameters[n] for n in optimizer.parameters if n in chart.parameters]
    if any(p.moved for p in held):
        return None
    where = [Spot(s.at, "this schedule gives 0") for s in schedulers if s.at] if any(
        (group["settings"].get("lr") or 0) > 0 for group in optimizer.groups
    ) else []  # fmt: skip
    return Seen(
        title=f"the learning rate was 0 in all {optimizer.windows:,} steps",
        where=[*where, Spot(optimizer.at, "built here") if optimizer.at else None],
        evidence=[
            f"{count(len(optimizer.rates_by_group), 'group')}, each with learning rate 0 at every step",
            f"update of all {count(len(held), 'parameter')}: exactly 0",
        ],
        step=3,
        statement="the learning rate is zero",
        advice=["Print the learning rate where the optimizer is built; integer division is the usual slip."],
    )


def _of_a_group(chart: ProcessChart, optimizer: Optimizer) -> Verdict:
    """Some groups learn, and most of the weights are in one that does not. It may be meant so: then the loss tells."""
    still = [index for index, (_, most, _) in enumerate(optimizer.rates_by_group) if most == 0]
    numbers = [number for index in still if index < len(optimizer.groups) for number in optimizer.groups[index].get("params", [])]
    held = [known for number in numbers if (known := chart.parameters.get(number)) is not None and known.trainable]
    everything = [known for number in optimizer.parameters if (known := chart.parameters.get(number)) is not None]
    if elements(held) < 0.5 * elements(everything) or any(known.moved or not known.with_gradient for known in held):
        return None
    now = standing(chart)
    return Seen(
        title=f"the learning rate of {percent(elements(held) / elements(everything))} of the weights was 0 in all {optimizer.windows:,} steps",
        where=[Spot(optimizer.at, "built here") if optimizer.at else None],
        evidence=[
            f"{count(len(still), 'group')} of {len(optimizer.rates_by_group)} with learning rate 0 at every step: {names(held)}",
            f"gradients reach {'it' if len(held) == 1 else 'them'}, and the update is exactly 0",
        ],
        severity="critical" if not isinstance(now, str) and now.stuck else "note",
        step=optimizer.windows,
        statement="the learning rate of a group is zero",
        advice=["Print the learning rate of each group; to freeze on purpose, requires_grad_(False) saves the backward as well."],
    )


@record_rule("stall/learning-rate-zero", "cause", explains=("stall/flat-loss", "stall/uniform-predictions"))
def record(source: SourceRecord) -> Verdict:
    for run in records.runs(source):
        rate, loss = run.rate(), run.main_loss()
        if rate is None or rate.count < 5 or rate.most != 0 or rate.least != 0:
            continue
        flat = loss is not None and loss.count >= 5 and loss.flat_to_the_digit() and loss.significant_digits() >= 3
        if not flat and (rate.digits is None or rate.digits < 9):
            return Missing(f"more digits of {rate.name}: {rate.text_of(0.0)} may be a small one")
        return Seen(
            title=f"{rate.name} is 0 in all {rate.count:,} lines that give it{records.of_run(source, run)}",
            where=[records.spot(source, rate.first_line, "the first"), records.spot(source, rate.last_line, "the last")],
            evidence=[
                f"printed as {rate.text_of(0.0)} from {records.at(rate.intervals[0])} to {records.at(rate.intervals[-1])}",
                *([f"{loss.name} stays at {loss.text_of(loss.last)} to the digit"] if flat and loss else []),
            ],
            step=rate.last_step,
            statement="the learning rate is zero",
            advice=["Print the learning rate where the optimizer is built; integer division is the usual slip."],
            certain=False,
            settle=records.UNDER_WATCH,
        )
    return None
