"""The chart of a run: one chart per process, kept up to date from the fact files."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from trainsleuth.case.beats import Beat, read_beats
from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.fatal import LastWords
from trainsleuth.case.reading import Fact, FactFollower
from trainsleuth.case.standstill import Standstill, from_fact

SUPERVISOR = "supervisor"  # the fact file that is written from outside


@dataclass
class RunChart:
    folder: Path
    processes: dict[str, ProcessChart] = field(default_factory=dict)
    facts: int = 0
    standstills: list[Standstill] = field(default_factory=list)
    killed: str = ""  # the signal by which somebody else ended the program

    def __post_init__(self) -> None:
        self._follower = FactFollower(self.folder)
        self._last_words = LastWords(self.folder)
        self._pages: dict[int, Beat] | None = None
        self._pages_at = -1

    def refresh(self) -> int:
        """Absorb what was written since the last look; the number of new facts."""
        news = 0
        for name, fact in self._follower.news():
            if name == SUPERVISOR:
                self._seen_from_outside(fact)
            else:
                chart = self.processes.get(name) or self.processes.setdefault(name, ProcessChart())
                chart.absorb(fact)
            news += 1
        for pid, fact in self._last_words.news():
            if (dead := self.chart_of(pid)) is not None:
                dead.absorb(fact)
        self.standstills = [self._with_ranks(still) for still in self.standstills]
        self.facts += news
        return news

    def _with_ranks(self, still: Standstill) -> Standstill:
        """From outside a rank is known by its environment only; the others have said it themselves."""
        if all(process.rank is not None for process in still.processes):
            return still
        said = {chart.process.get("pid"): chart.process.get("rank") for chart in self.processes.values()}
        return replace(still, processes=tuple(
            replace(process, rank=said.get(process.pid)) if process.rank is None else process for process in still.processes
        ))  # fmt: skip

    def _seen_from_outside(self, fact: Fact) -> None:
        if fact["k"] == "killed":
            self.killed = str(fact.get("signal"))
            return
        if fact["k"] in ("examined", "crash"):
            chart = self.chart_of(fact.get("pid") or 0)
            if chart is not None:
                chart.absorb(fact)
            return
        if fact["k"] not in ("standstill", "recovered"):
            return
        try:
            standstill = from_fact(fact)
        except (KeyError, TypeError):
            return
        self.standstills = [known for known in self.standstills if known.since != standstill.since][-7:] + [standstill]

    def standstill(self) -> Standstill | None:
        """The last one."""
        return self.standstills[-1] if self.standstills else None

    def beat_of(self, pid: int) -> Beat | None:
        """The heartbeat page that a process left, which outlives it."""
        if self._pages is None or self._pages_at != self.facts:
            self._pages, self._pages_at = {beat.pid: beat for beat in read_beats(self.folder.parent / "beats")}, self.facts
        return self._pages.get(pid)

    def chart_of(self, pid: int) -> ProcessChart | None:
        """What a process said of itself."""
        found = [chart for chart in self.processes.values() if chart.process.get("pid") == pid]
        return found[-1] if found else None

    @property
    def unreadable(self) -> int:
        return self._follower.unreadable

    def probes_off(self) -> list[dict[str, str]]:
        """Each probe that switched itself off, once, and why."""
        found = {fact["probe"]: fact["why"] for chart in self.processes.values() for fact in chart.probes_off}
        return [{"probe": probe, "why": why} for probe, why in found.items()]

    def training(self) -> list[ProcessChart]:
        """The processes that train, lowest rank first."""
        found = [chart for chart in self.processes.values() if chart.trains]
        return sorted(found, key=lambda chart: (chart.process.get("rank") or 0, chart.process.get("t") or 0))

    def with_torch(self) -> list[ProcessChart]:
        return [chart for chart in self.processes.values() if chart.environment]

    def crashes(self) -> list[ProcessChart]:
        return [chart for chart in self.processes.values() if chart.crash is not None]
