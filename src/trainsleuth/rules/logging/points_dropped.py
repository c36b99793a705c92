"""W&B throws logged points away.

What it detects
    A `log` whose step is older than W&B's own counter, which loses the whole record; and a name that is logged again at a step that
    is still open, which overwrites the value before it.
Why it matters
    W&B says so only once, in a warning among many. The curves have holes, and nobody knows which.
How it is confirmed
    The counter of W&B is followed call by call; W&B's internal log says the same. The finding lists every lost point. In a trial W&B counts
    by itself, whatever step it is given (knob `one-counter`): then nothing is lost.
How to cure it
    Let one counter number all calls: always give `step`, or never. Draw epochs and validation over axes of their own
    (`run.define_metric("val/*", step_metric="epoch")`). `trainsleuth.stepping.StepLogger` does both.
When it is wrong
    A value that is overwritten on purpose (the best so far, logged again at the same step) is listed, too.
"""

from collections import Counter
from collections.abc import Sequence

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Place, place
from trainsleuth.case.reading import Fact
from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.rules.kinds import Seen, Spot, Verdict, cause_rule, record_rule
from trainsleuth.rules.wording import count

MOST_TOLD = 12
MOST_STRETCHES = 200
MANY_OVERWRITTEN = 10


@cause_rule("logging/points-dropped", settled_by=("one-counter",))
def rule(chart: ProcessChart) -> Verdict:
    lost = chart.log_lost
    if not lost:
        return None
    older = [fact for fact in lost if fact["why"] == "older"]
    if not older and len(lost) < MANY_OVERWRITTEN:
        return None
    first = (older or lost)[0]
    total = max(chart.log_lost_count, len(lost))
    return Seen(
        title=f"W&B has thrown {count(total, 'logged point')} away" if older else f"{count(total, 'point')} in W&B were overwritten",
        where=_places(first, "logs with a step that W&B has passed" if older else "logs the same name at the same step again"),
        evidence=[*_listed(lost), *_reason(first)],
        severity="warning",
        statement="two counters number the same run: this call gives its own step, others let W&B count"
        if older
        else "one step is given to several points of the same name",
        advice=["Give `step` in every call, from one counter that only grows; or in none, and draw epochs and validation with define_metric.",
                "trainsleuth.stepping.StepLogger keeps one counter for all."],
        step=first.get("step"),
    )  # fmt: skip


@record_rule("logging/points-dropped", "cause", structural=True)
def record(source: SourceRecord) -> Verdict:
    """W&B's internal log gives the steps of the records that it threw away; their names it does not keep."""
    lost = [fact for fact in source.dropped if fact.get("logger") == "wandb"]
    if not lost:
        return None
    return Seen(
        title=f"W&B has thrown {count(lost, 'record')} away, each with all its metrics",
        evidence=[
            f"lost at {steps_in_words([fact['step'] for fact in lost])}",
            f"the first: step {lost[0]['step']:,} came when W&B was at {lost[0]['current']:,}",
            "W&B's internal log says so; it does not say which metrics the records held",
        ],
        severity="warning",
        statement="some calls give a step of their own, others let W&B count",
        advice=[
            "Use one counter for all calls (`trainsleuth.stepping.StepLogger`), and define_metric for epochs and validation."
        ],
        step=lost[0]["step"],
        settle="which call it was: `trainsleuth run` names the line and every lost metric",
    )


def _places(fact: Fact, note: str) -> list[Spot]:
    found = [(place(fact["at"]), note), (place(fact.get("ahead_at")), "had moved W&B's counter ahead")]
    spots: dict[Place, Spot] = {}
    for at, why in found:
        if at is not None:
            spots.setdefault(at, Spot(at, why))
    return list(spots.values())


def _reason(first: Fact) -> list[str]:
    if first["why"] != "older":
        return ["W&B keeps one value for each name and step: the last"]
    return [f"the first: step {first['step']:,} came when W&B was at {first['current']:,}; W&B drops such a record whole"]


def _listed(lost: Sequence[Fact]) -> list[str]:
    """Every lost point, by name: the steps at which it was lost."""
    by_name: dict[tuple[str, str], list[int]] = {}
    for fact in lost:
        by_name.setdefault((str(fact["name"]), fact["why"]), []).append(fact["step"])
    rows = [
        f"{name}: {'lost' if why == 'older' else 'overwritten'} at {steps_in_words(steps)}"
        for (name, why), steps in by_name.items()
    ]
    return rows[:MOST_TOLD] + ([f"and {count(len(rows) - MOST_TOLD, 'other name')}"] if len(rows) > MOST_TOLD else [])


def steps_in_words(steps: Sequence[int]) -> str:
    """Every step: `step 3`, or `steps 3, 5–9, 12 (twice)`; of very many stretches the first and the last."""
    stretches: list[list[int]] = []  # first, last, how often
    for step, times in sorted(Counter(steps).items()):
        if stretches and stretches[-1][1] == step - 1 and stretches[-1][2] == times == 1:
            stretches[-1][1] = step
        else:
            stretches.append([step, step, times])
    told = [_stretch(*stretch) for stretch in stretches]
    if len(told) > MOST_STRETCHES:
        told = [*told[: MOST_STRETCHES // 2], "…", *told[-MOST_STRETCHES // 2 :], f"{len(steps):,} in all"]
    return f"{'step' if len(set(steps)) == 1 else 'steps'} {', '.join(told)}"


def _stretch(first: int, last: int, times: int) -> str:
    often = "" if times == 1 else " (twice)" if times == 2 else f" ({times:,} times)"
    return f"{first:,}{often}" if first == last else f"{first:,}–{last:,}{often}"
