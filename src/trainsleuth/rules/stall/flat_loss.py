"""The loss stands still at the level of guessing.

What it detects
    After at least forty values the last quarter of the loss is no better than the second, and its level is that of the best
    guess that ignores the input: the entropy of the labels for classes, the variance of the targets for regression. Before a hundred
    values it is a note, unless a cause explains it.
    From a log alone: a loss that is the same to the last printed digit from the first line to the last. One that merely wobbles
    without falling is not told: a converged run, a fine-tuning from a good start and a game look the same.
Why it matters
    The program runs, and does not learn.
How it is confirmed
    It is a symptom. The causes that explain it are tested one by one.
How to cure it
    See the causes.
When it is wrong
    Some models stay at chance for a long time and then learn. The finding says how many steps it has seen.
"""

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.rules import records
from trainsleuth.rules.kinds import Missing, Seen, Verdict, record_rule, symptom_rule
from trainsleuth.rules.standing import standing
from trainsleuth.rules.wording import number

LONG_ENOUGH = 100  # values: many sound runs stand at the level of guessing for their first steps


@symptom_rule("stall/flat-loss")
def rule(chart: ProcessChart) -> Verdict:
    now = standing(chart)
    if isinstance(now, str):
        return Missing(now)
    if not now.stuck:
        return None
    meaning = "the level of guessing" if now.level < 1.3 * now.chance else "worse than guessing"
    return Seen(
        title=f"the loss stands still at {number(now.level)}, which is {meaning}",
        where=[now.at],
        evidence=[
            f"{now.curve.count:,} values: first {number(now.curve.first)}, last quarter {number(now.level)}; "
            f"a guess that ignores the input gives {number(now.chance)}"
        ],
        severity="critical" if now.curve.count >= LONG_ENOUGH else "note",
        advice=["`trainsleuth prove` tests the suspected causes; none is certain from watching alone."],
    )


@record_rule("stall/flat-loss")
def record(source: SourceRecord) -> Verdict:
    for run in records.runs(source):
        loss = run.main_loss()
        if loss is None or not records.long_enough(loss):
            return Missing("ten values of the training loss, or three that are 500 steps apart")
        if records.in_a_game(run) or loss.last == 0 or not loss.flat_to_the_digit():
            continue
        if loss.significant_digits() < 3:
            return Missing(f"more digits of {loss.name}: {loss.text_of(loss.last)} may hide a loss that moves")
        return Seen(
            title=f"{loss.name} is {loss.text_of(loss.last)} to the last digit in all {loss.count:,} values{records.of_run(source, run)}",
            where=[records.spot(source, loss.first_line, "the first"), records.spot(source, loss.last_line, "the last")],
            evidence=[
                f"from {records.at(loss.intervals[0])} to {records.at(loss.intervals[-1])} it never moved: that is no noise and no plateau, "
                "the weights or the inputs of the loss do not change"
            ],
            severity="critical",
            step=loss.last_step,
            statement="nothing that the loss depends on changes",
            advice=["Look whether the optimizer steps, with which learning rate, and whether it holds the parameters of this model."],
            certain=False,
            settle=records.UNDER_WATCH,
        )
    return None
