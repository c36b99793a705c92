"""Isolation: which part of a model, alone with the inputs that it really gets, already hangs or crashes.

Each row of the table is a trial of the whole program that ends after one backward through a chosen stretch of the model: one part,
two neighbours, everything without the loss, the loss alone, everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from trainsleuth.case.reading import Fact
from trainsleuth.case.run_chart import RunChart
from trainsleuth.trials.bench import Bench, Done, OutOfTime, require_sandbox
from trainsleuth.trials.settle import Event, Note, Suspected, symptom_of
from trainsleuth.trials.trial import Known, Setting, Trial, facts_of

MOST_PARTS = 8
LOSS = "loss"
WORDS = {"hang": "stands still", "crash": "crashes", "healthy": "returns"}


@dataclass(frozen=True)
class Row:
    """One stretch of the model, and what became of it."""

    label: str
    kind: str  # hang, crash, healthy, or not tried
    seconds: float | None
    parts: int
    where: str = ""  # the part in whose forward it ended, if it did not get as far as backward


@dataclass(frozen=True)
class Isolated:
    """The table of one finding."""

    finding: str
    rows: tuple[Row, ...]
    conclusion: str


def isolate(bench: Bench, finding: Suspected) -> Iterator[Event | Isolated]:
    """Run the program part by part, and say which part is enough."""
    require_sandbox(bench.unsafe)
    symptom = symptom_of(finding, bench.chart)
    if symptom not in ("hang", "crash"):
        yield Note("parts are isolated for hangs and crashes; this finding is about neither")
        return
    reached = (finding.step or 0) if symptom == "hang" else max(0, (finding.step or 1) - 1)
    files = [Path(place.file) for place in finding.where]

    def stretch(label: str, first: str, last: str) -> Trial:
        setting = Setting("isolate", {"first": first, "last": last, "at": reached})
        return bench.trial("knob", label, [setting], watched=files, standing=symptom == "hang")

    got: dict[str, Known] = {}
    rows: list[tuple[Trial, int]] = [(stretch("all, with the loss", "", ""), 99)]
    try:
        yield from _collect(bench, [rows[0][0]], got)
        parts = _parts(bench, got[rows[0][0].key])
        if not parts:
            yield Note("no call of a model with parts was seen before the program stopped, so there is nothing to isolate")
            return
        rows = [*_stretches(parts, stretch), *rows]
        yield from _collect(bench, [one for one, _ in rows], got)
    except OutOfTime:
        yield Note("the budget is used up; the rows that are missing were not tried")
    table = tuple(_row(bench, one, got.get(one.key), count) for one, count in rows)
    yield Isolated(finding.id, table, conclusion(table))


def _collect(bench: Bench, wanted: Sequence[Trial], got: dict[str, Known]) -> Iterator[Event]:
    for event in bench.run(wanted):
        if isinstance(event, Done):
            got[event.known.key] = event.known
        yield event


def _parts(bench: Bench, known: Known) -> list[str]:
    """The parts of the model, in the order in which the first step called them."""
    facts = _facts(bench, known)
    entered = [str(fact["entered"]) for fact in facts if "entered" in fact]
    listed = [str(row[0]) for fact in facts for row in fact.get("parts", [])]
    return (list(dict.fromkeys(entered)) + [path for path in listed if path not in entered])[:MOST_PARTS]


def _facts(bench: Bench, known: Known) -> list[Fact]:
    chart = RunChart(facts_of(bench.case.trials / known.id))
    chart.refresh()
    return [fact for each in chart.processes.values() for fact in each.knobs if fact.get("knob") == "isolate"]


def _stretches(parts: Sequence[str], stretch: Callable[[str, str, str], Trial]) -> list[tuple[Trial, int]]:
    rows = [(stretch(f"{part} alone", part, part), 1) for part in parts]
    rows.append((stretch("the loss alone", LOSS, ""), 1))
    if len(parts) > 2:
        rows += [(stretch(f"{one} + {other}", one, other), 2) for one, other in pairwise(parts)]
    if len(parts) > 1:
        rows.append((stretch("all, sum instead of loss", "", parts[-1]), len(parts)))
    return rows


def _row(bench: Bench, one: Trial, known: Known | None, count: int) -> Row:
    if known is None:
        return Row(one.label, "not tried", None, count)
    facts = _facts(bench, known)
    entered = [str(fact["entered"]) for fact in facts if "entered" in fact]
    left = [str(fact["left"]) for fact in facts if "left" in fact]
    seconds = next((float(str(fact["seconds"])) for fact in facts if fact.get("done")), None)
    inside = entered[-1] if known.outcome.kind in ("hang", "crash") and len(entered) > len(left) else ""
    kind = "healthy" if seconds is not None else known.outcome.kind
    return Row(one.label, kind, seconds, count, inside)


def words(row: Row) -> str:
    if row.seconds is not None:
        return f"returns in {1000 * row.seconds:.0f} ms"
    where = f" in the forward of {row.where}" if row.where else ""
    return WORDS.get(row.kind, row.kind) + where


def conclusion(rows: Sequence[Row]) -> str:
    """The smallest stretch that fails, in a sentence."""
    failing = [row for row in rows if row.kind in ("hang", "crash")]
    if not failing:
        return "no part fails, and neither does the whole: the symptom did not come back"
    inside = {row.where for row in failing}
    if len(inside) == 1 and "" not in inside:
        return f"the forward of {inside.pop()} is where it ends, whatever follows"
    fewest = min(row.parts for row in failing)
    smallest = [row.label for row in failing if row.parts == fewest]
    innocent = [row.label for row in rows if row.kind == "healthy" and row.parts == 1]
    told = f"; {', '.join(innocent)} {'returns' if len(innocent) == 1 else 'return'}" if innocent else ""
    return f"{' and '.join(smallest)} {'is' if len(smallest) == 1 else 'are'} enough{told}"
