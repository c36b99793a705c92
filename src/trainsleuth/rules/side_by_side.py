"""What rules about ranks share: the ranks of a run, what each of them entered, and the table that is shown."""

from __future__ import annotations

from dataclasses import dataclass

from trainsleuth.case.beats import Beat
from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Place
from trainsleuth.case.run_chart import RunChart
from trainsleuth.case.standstill import ProcessSeen, users_line
from trainsleuth.rules.still import phase_of

ABOUT_RANKS = ("hang/backward", "hang/standstill", "crash/exception", "crash/known")


@dataclass(frozen=True)
class Entered:
    """One collective that a rank entered."""

    count: int
    name: str
    shape: str
    at: Place | None

    def said(self) -> str:
        return f"{self.name}({self.shape.replace('x', '×')})" if self.shape else f"{self.name}()"


@dataclass(frozen=True)
class Rank:
    number: int
    chart: ProcessChart
    seen: ProcessSeen | None  # from outside, at the last standstill
    beat: Beat | None  # the page it left

    @property
    def collectives(self) -> int:
        pages = [page.collectives for page in (self.seen, self.beat) if page is not None]
        return max([*pages, int(self.chart.collectives.get("entered", 0))])

    @property
    def backwards(self) -> int:
        return max(
            self.seen.backwards if self.seen is not None else self.beat.backwards if self.beat is not None else 0,
            self.chart.backwards,
        )

    @property
    def in_backward(self) -> bool:
        return self.seen is not None and self.seen.main is not None and phase_of(self.seen, self.seen.main) == "backward"

    def line(self) -> Place | None:
        return users_line(self.seen.main) if self.seen is not None and self.seen.main is not None else None

    def latest(self) -> list[Entered]:
        found = []
        page = self.seen or self.beat
        for count, number, shape in page.latest if page is not None else ():
            name, at = self.chart.collective_places.get(number, ("?", None))
            found.append(Entered(count, name, shape, at))
        return found

    def waits_in(self) -> Entered | None:
        """The explicit collective that it is inside of."""
        latest = self.latest()
        return latest[-1] if latest and self.seen is not None and self.seen.in_collective else None


def ranks_of(run: RunChart) -> list[Rank]:
    """The ranks of a run, lowest first; of a rank that was started again, the last process."""
    still = run.standstill()
    charts = [chart for chart in run.processes.values() if chart.process.get("rank") is not None and chart.environment]
    rank_of_pid = {chart.process["pid"]: chart.process["rank"] for chart in charts}
    found: dict[int, Rank] = {}
    for chart in sorted(charts, key=lambda chart: chart.process.get("t") or 0):
        number, pid = chart.process["rank"], chart.process["pid"]
        started_by_itself = rank_of_pid.get(chart.process.get("parent")) == number  # a loader's worker is no rank
        if (chart.process.get("world") or 1) > 1 and not started_by_itself:
            found[number] = Rank(number, chart, still.process(pid) if still is not None else None, run.beat_of(pid))
    return [found[number] for number in sorted(found)]


def table(ranks: list[Rank], most: int = 8) -> list[str]:
    """Rank, the last collective it entered, and the line where it is."""
    rows = []
    for rank in ranks[:most]:
        inside, at = rank.waits_in(), rank.line()
        if inside is not None:
            doing = f"in collective {inside.count}, {inside.said()}"
            at = inside.at or at
        elif rank.chart.ended or rank.seen is None:
            doing = f"ended after {rank.backwards} backwards and {rank.collectives} collectives"
        else:
            doing = f"in backward {rank.backwards + 1}" if rank.in_backward else "elsewhere"
            doing += f", {rank.collectives} collectives entered" if rank.collectives else ""
            doing += f" ({rank.seen.native} collectives before it, DDP's own included)" if rank.in_backward and rank.seen.native else ""
        where = f"  {at.file.rsplit('/', 1)[-1]}:{at.line}" if at is not None and rank.seen is not None else ""
        rows.append(f"rank {rank.number}  {doing}{where}")
    if len(ranks) > most:
        rows.append(f"and {len(ranks) - most} more ranks")
    return rows


def close(one: float, other: float, share: float) -> bool:
    return abs(one - other) <= share * max(abs(one), abs(other), 1e-30)
