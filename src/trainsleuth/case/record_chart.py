"""The chart of what runs left behind: one part for each source, one for each run in it; all that a rule on records may read."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from trainsleuth.case.entries import keep
from trainsleuth.case.roles import Role, Split, split_of
from trainsleuth.case.series import Series
from trainsleuth.readers.kinds import Fact

MOST_SERIES = 500
MOST_RUNS = 256
MOST_SETTINGS = 4000
MOST_MESSAGES = 4000
MOST_LOST = 2000
MOST_FLIGHTS = 4096
LONGEST_PAUSES = 8
TOTAL_LOSSES = ("loss", "tot_loss", "total_loss", "train_loss", "train/loss", "training_loss", "train loss", "total loss",
                "train/total_loss", "train/tot_loss", "train_loss_epoch", "train_loss_step", "train/loss_epoch", "train/loss_step",
                "loss_step", "loss_epoch")  # fmt: skip


@dataclass
class Message:
    """A line that says something in words, as it stood first and last, with other digits perhaps in between."""

    text: str
    line: int
    count: int
    last_text: str
    last_line: int


@dataclass(frozen=True)
class Pause:
    seconds: float
    before: int  # the line before it
    after: int


@dataclass
class Pauses:
    """When lines were written."""

    count: int = 0
    first: float = 0.0
    last: float = 0.0
    usual: list[float] = field(default_factory=list)
    longest: list[Pause] = field(default_factory=list)
    last_line: int = 0

    def usually(self) -> float:
        return sorted(self.usual)[len(self.usual) // 2] if self.usual else 0.0


@dataclass
class RunRecord:
    """One run of a source: its curves by name."""

    source: SourceRecord
    number: int
    series: dict[str, Series] = field(default_factory=dict)
    left_out: int = 0

    def of_role(self, *roles: Role, split: Split | None = None) -> list[Series]:
        return [s for s in self.series.values() if s.role in roles and (split is None or s.split == split)]

    def main_loss(self) -> Series | None:
        """The loss that training goes down: a total before its parts, training before validation."""
        found = [s for s in self.of_role("loss") if s.split != "val"]
        totals = [s for s in found if s.name.lower() in TOTAL_LOSSES]
        return max(totals or found, key=lambda s: s.values, default=None)

    def held_out_loss(self) -> Series | None:
        return max(self.of_role("loss", split="val"), key=lambda s: (s.name.lower().endswith("loss"), s.values), default=None)

    def rate(self) -> Series | None:
        return max(self.of_role("rate"), key=lambda s: s.values, default=None)


@dataclass
class SourceRecord:
    """One file, or the files that belong together."""

    path: str
    format: str = ""
    quotable: bool = True  # its `at` are lines of a text
    runs: dict[int, RunRecord] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)
    pauses: Pauses = field(default_factory=Pauses)
    crashes: list[Fact] = field(default_factory=list)
    stacks: list[Fact] = field(default_factory=list)
    dropped: list[Fact] = field(default_factory=list)
    dropped_count: int = 0
    skipped: list[Fact] = field(default_factory=list)
    writers: list[Fact] = field(default_factory=list)
    flights: deque[Fact] = field(default_factory=lambda: deque(maxlen=MOST_FLIGHTS))  # the collectives that a rank entered last
    points: int = 0

    def absorb(self, fact: Fact) -> None:
        """Reduce one fact; one that is not whole changes nothing."""
        handler = _HANDLERS.get(fact.get("k", ""))
        try:
            if handler is not None:
                handler(self, fact)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
            keep(self.skipped, {"k": "skipped", "what": f"a fact of kind {fact.get('k')} that is not whole", "count": 1, "at": 0}, 64)

    def setting(self, *endings: str) -> Any:
        """The value of a setting whose name ends so, in any case; earlier endings first."""
        names = {name.lower().replace("-", "_").replace(" ", "_"): value for name, value in reversed(self.settings.items())}
        for ending in endings:
            for name, value in names.items():
                if name == ending or name.endswith(("." + ending, "/" + ending, "_" + ending)):
                    return value
        return None

    def _source(self, fact: Fact) -> None:
        self.format = fact["format"]

    def _series(self, run: int, prefix: str, name: str) -> Series | None:
        record = self.runs.get(run)
        if record is None:
            if len(self.runs) >= MOST_RUNS:
                return None
            record = self.runs[run] = RunRecord(self, run)
        full = f"{prefix}/{name}" if prefix and not split_of(name) else name
        known = record.series.get(full)
        if known is None:
            if len(record.series) >= MOST_SERIES:
                record.left_out += 1
                return None
            known = record.series[full] = Series(full)
        return known

    def _point(self, fact: Fact) -> None:
        series = self._series(fact["run"], fact["prefix"], fact["name"])
        self.points += 1
        if series is not None:
            step, epoch, t = fact["step"], fact["epoch"], fact["t"]
            series.extend(
                [float(fact["value"])], [fact["at"]], None if step is None else [int(step)], None if epoch is None else [float(epoch)],
                None if t is None else [float(t)], fact.get("digits"),
            )  # fmt: skip

    def _points(self, fact: Fact) -> None:
        series = self._series(fact["run"], fact["prefix"], fact["name"])
        self.points += len(fact["values"])
        if series is not None:
            series.extend(fact["values"], fact["lines"], fact["steps"], fact["epochs"], fact["times"], fact["digits"], fact["rising"])

    def _setting(self, fact: Fact) -> None:
        if len(self.settings) < MOST_SETTINGS:
            self.settings.setdefault(str(fact["name"]), fact["value"])

    def _message(self, fact: Fact) -> None:
        known = self.messages.get(fact["at"])
        if known is not None:
            known.count += fact["count"]
            known.last_text, known.last_line = fact["last_text"], fact["last"]
        elif len(self.messages) < MOST_MESSAGES:
            self.messages[fact["at"]] = Message(fact["text"], fact["at"], fact["count"], fact["last_text"], fact["last"])

    def _pauses(self, fact: Fact) -> None:
        pauses = self.pauses
        longest = [Pause(*row) for row in fact["longest"]]
        if pauses.count and fact["first"] > pauses.last:
            longest.append(Pause(fact["first"] - pauses.last, pauses.last_line, fact["lines"][0]))
        pauses.first = pauses.first if pauses.count else fact["first"]
        pauses.count += fact["count"]
        pauses.last, pauses.last_line = fact["last"], fact["lines"][1]
        if fact["count"] > 1:
            keep(pauses.usual, fact["usual"], 512)
        pauses.longest = sorted([*pauses.longest, *longest], key=lambda pause: -pause.seconds)[:LONGEST_PAUSES]

    def _crash(self, fact: Fact) -> None:
        keep(self.crashes, fact, 64)

    def _stack(self, fact: Fact) -> None:
        keep(self.stacks, fact, 256)

    def _dropped(self, fact: Fact) -> None:
        self.dropped_count += 1
        keep(self.dropped, fact, MOST_LOST)

    def _writer(self, fact: Fact) -> None:
        keep(self.writers, fact, 256)

    def _flight(self, fact: Fact) -> None:
        self.flights.append(fact)

    def _skipped(self, fact: Fact) -> None:
        keep(self.skipped, fact, 64)


_HANDLERS = {
    kind: getattr(SourceRecord, f"_{kind}")
    for kind in ("source", "point", "points", "setting", "message", "pauses", "crash", "stack", "dropped", "skipped", "writer", "flight")
}


@dataclass
class RecordChart:
    """All sources that were given together."""

    sources: dict[str, SourceRecord] = field(default_factory=dict)

    def source(self, group: str, path: str, quotable: bool) -> SourceRecord:
        return self.sources.setdefault(group, SourceRecord(path, quotable=quotable))

    def runs(self) -> Iterator[RunRecord]:
        for source in self.sources.values():
            yield from (source.runs[number] for number in sorted(source.runs))

    @property
    def points(self) -> int:
        return sum(source.points for source in self.sources.values())
