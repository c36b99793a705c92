"""The learning rate is still warming up when the run ends, and nothing was learnt.

What it detects
    The program has ended by itself, and the learning rate rose from the first step to the last without ever reaching what the
    optimizer or its scheduler was given. From a log: it rises to the last line, and the settings in the log name a higher one.
Why it matters
    Warm-up counted in epochs where steps are meant (or in micro-batches where updates are meant) lasts many times too long.
How it is confirmed
    By the learning rate of every window. The trial `constant-learning-rate` gives it its full size at once.
How to cure it
    Count warm-up in the unit in which the scheduler is stepped.
When it is wrong
    A run that was interrupted may have been in its warm-up still: silent.
"""

from itertools import pairwise

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import place
from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.rules import records
from trainsleuth.rules.kinds import Missing, Seen, Spot, Verdict, cause_rule, record_rule
from trainsleuth.rules.standing import standing
from trainsleuth.rules.wording import number, percent

STILL_RISING = 1.1  # the last rate against the mean of the part before it


@cause_rule(
    "schedule/warmup-never-ends", explains=("stall/flat-loss", "stall/uniform-predictions"),
    settled_by=("constant-learning-rate",), structural=False, masks=("stall/inputs-and-targets-misaligned", "stall/params-frozen"),
)  # fmt: skip
def rule(chart: ProcessChart) -> Verdict:
    optimizer = chart.main_optimizer()
    if optimizer is None or optimizer.windows < 20 or len(optimizer.rates.points) < 4:
        return None
    rates = optimizer.rates
    schedulers = [s for s in chart.schedulers.values() if s.optimizer == optimizer.id]
    meant = max(
        [group["settings"].get("initial_lr") or group["settings"].get("lr") or 0.0 for group in optimizer.groups]
        + [rate for s in schedulers for rate in s.about.get("base", [])],
        default=0.0,
    )
    before = rates.between(0.4, 0.8)[0]
    rising = rates.last >= rates.most > 0 and rates.last > STILL_RISING * before
    if meant <= 0 or not rising or rates.most > 0.9 * meant:
        return None
    if chart.interrupted or chart.crash is not None:
        return None
    if not (chart.ended or chart.stopped):
        return Missing("the end of the run")
    now = standing(chart)
    return Seen(
        title=f"warm-up never ends: after {optimizer.windows:,} steps the learning rate is {percent(rates.most / meant)} of {number(meant)}",
        where=[
            *[Spot(at, "asked for here") for s in schedulers[:1] if (at := place(s.about.get("via")))],
            *[Spot(s.at, "this schedule") for s in schedulers if s.at][:1],
            Spot(optimizer.at, "the optimizer") if optimizer.at else None,
        ],
        evidence=[
            f"learning rate {number(rates.first)} → {number(rates.last)}, still rising at the last step",
            f"at this pace it reaches {number(meant)} after about {int(optimizer.windows * meant / rates.last):,} steps; "
            f"the run had {optimizer.windows:,}",
        ],
        severity="critical" if not isinstance(now, str) and now.still else "warning",
        step=optimizer.windows,
        statement="warm-up is counted in the wrong unit",
        advice=["Count warm-up in the unit in which the scheduler is stepped (updates, not epochs or micro-batches)."],
        look_for="" if schedulers else "rate",
    )


@record_rule("schedule/warmup-never-ends", "cause", explains=("stall/flat-loss", "stall/uniform-predictions"))
def record(source: SourceRecord) -> Verdict:
    for run in records.runs(source):
        rate = run.rate()
        if rate is None or rate.count < 20 or rate.most <= 0:
            continue
        parts = rate.segments(8)
        if not all(before < after for before, after in pairwise(parts)) or rate.last < rate.most:
            continue
        meant = source.setting("base_lr", "max_lr", "peak_lr", "learning_rate", "lr")
        if not isinstance(meant, (int, float)) or meant <= 0:
            return Missing("the learning rate that was meant: the logged one rises to the end")
        if rate.most > 0.5 * meant:
            continue
        loss = run.main_loss()
        still = loss is not None and loss.count >= 10 and records.fell(loss) < 0.02
        return Seen(
            title=f"warm-up never ends: at {records.at(rate.intervals[-1])} the learning rate is {percent(rate.most / meant)} of {number(meant)}",
            where=[records.spot(source, rate.first_line, "the first"), records.spot(source, rate.last_line, "the last, still rising")],
            evidence=[f"{rate.name} {number(rate.first)} → {number(rate.last)}, rising in each eighth of the log; the settings say {number(meant)}"],
            severity="critical" if still else "warning",
            step=rate.last_step,
            statement="warm-up is counted in the wrong unit",
            advice=["Count warm-up in the unit in which the scheduler is stepped (updates, not epochs or micro-batches)."],
            certain=False,
            settle="the end of the run: a log that was cut short, or is still being written, may be in its warm-up",
        )
    return None
