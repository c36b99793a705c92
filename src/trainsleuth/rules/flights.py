"""What flight recorder dumps of several ranks say together: who entered which collective, and who did not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from trainsleuth.case.entries import Place
from trainsleuth.case.record_chart import RecordChart
from trainsleuth.case.standstill import Frame, is_users
from trainsleuth.readers.kinds import Fact

OF_ONE_SIZE = ("all_reduce", "allreduce", "broadcast", "reduce", "_all_gather_base", "all_gather_into_tensor")  # on all ranks
SETTLE = "whether the dumps are of one moment; `trainsleuth run` holds the ranks beside each other while they stand still"


@dataclass(frozen=True)
class Call:
    """One collective that a rank entered."""

    rank: int
    number: int
    name: str
    sizes: tuple[tuple[int, ...], ...]
    done: bool
    at: Place | None

    @property
    def meaning(self) -> tuple[object, ...]:
        """What must be the same on all ranks."""
        return (self.name, self.sizes) if self.name in OF_ONE_SIZE else (self.name,)

    def said(self) -> str:
        return f"{self.name}({', '.join('×'.join(map(str, shape)) for shape in self.sizes)})"

    def told(self) -> str:
        where = f"  {self.at.file.rsplit('/', 1)[-1]}:{self.at.line}" if self.at is not None else ""
        return f"rank {self.rank}  collective {self.number:,}, {self.said()}{'' if self.done else ', not done'}{where}"


def groups(chart: RecordChart) -> Iterator[dict[int, dict[int, Call]]]:
    """Of each group in which several ranks entered something: their calls, by rank and number."""
    found: defaultdict[str, defaultdict[int, dict[int, Call]]] = defaultdict(lambda: defaultdict(dict))
    for source in chart.sources.values():
        for fact in source.flights:
            if fact["rank"] is not None and not fact["pair"]:
                found[fact["group"]][fact["rank"]][fact["number"]] = _call(fact)
    for ranks in found.values():
        if len(ranks) > 1:
            yield {rank: ranks[rank] for rank in sorted(ranks)}


def _call(fact: Fact) -> Call:
    sizes = tuple(tuple(shape) for shape in fact["sizes"])
    lines = (Frame(function, file, line) for file, line, function in fact["frames"])
    users = next((frame for frame in lines if is_users(frame)), None)
    at = Place(users.file, users.line, users.function) if users is not None else None
    return Call(fact["rank"], fact["number"], fact["name"].rpartition(":")[2], sizes, fact["done"], at)
