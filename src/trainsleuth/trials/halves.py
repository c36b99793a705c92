"""What 16 bit does to each module of a model, from one instrumented trial, and how modules contain each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainsleuth.case.entries import Place, place
from trainsleuth.case.run_chart import RunChart
from trainsleuth.trials.trial import facts_of

EXPLAINS = 0.5  # a part whose error is this share of the whole's explains it


@dataclass(frozen=True)
class ModuleError:
    """One module: its outputs and gradients in 16 bit beside 32 bit, on the same inputs."""

    module: str  # its address: the model's class and the path inside it
    kind: str
    output: float  # error as a share of the size in 32 bit
    gradient: float
    vanished: float  # share of the gradients that are zero in 16 bit alone
    overflowed: float  # share of the gradients, or of the outputs, that are not finite in 16 bit alone
    overflows: float  # share of the calls in which that happens: a scaler that starts too high makes it happen once
    seconds: float
    weights: int
    at: Place | None  # the user's line that calls it, if one does so directly
    given: tuple[str, ...] = ()
    device: str = "cpu"

    @property
    def severity(self) -> tuple[float, float]:
        return self.overflows, max(self.output, self.gradient, self.vanished)


class Tree:
    """The modules that were compared, by address."""

    def __init__(self, errors: Iterable[ModuleError]) -> None:
        self.errors = {error.module: error for error in errors}
        self._parents = {module: self._parent(module) for module in self.errors}

    def _parent(self, module: str) -> str | None:
        above = module.rpartition(".")[0]
        while above and above not in self.errors:
            above = above.rpartition(".")[0]
        return above or None

    def ranked(self, modules: Iterable[str]) -> list[str]:
        """The most suspicious first."""
        return sorted(modules, key=lambda module: self.errors[module].severity, reverse=True)

    def roots(self) -> list[str]:
        return self.ranked(module for module, parent in self._parents.items() if parent is None)

    def children(self, module: str) -> list[str]:
        return self.ranked(child for child, parent in self._parents.items() if parent == module)

    def above(self, module: str) -> list[str]:
        """The modules that contain it, the nearest first."""
        found: list[str] = []
        parent = self._parents[module]
        while parent is not None:
            found.append(parent)
            parent = self._parents[parent]
        return found

    def prime_suspect(self) -> str:
        """From the model downwards, as long as one part has most of the error of the whole."""
        suspect = self.roots()[0]
        while True:
            parts = self.children(suspect)
            if not parts or not self._explains(parts[0], suspect):
                return suspect
            suspect = parts[0]

    def _explains(self, part: str, whole: str) -> bool:
        (overflows, error), (all_overflows, all_error) = self.errors[part].severity, self.errors[whole].severity
        return overflows >= EXPLAINS * all_overflows if all_overflows else error >= EXPLAINS * all_error

    def all_but(self, modules: Sequence[str]) -> list[str]:
        """As few modules as cover everything except these, what is in them, and what they are in."""
        touched = {*modules, *(above for module in modules for above in self.above(module))}
        return self.ranked(
            module
            for module, parent in self._parents.items()
            if module not in touched and (parent is None or parent in touched) and parent not in modules
        )

    def time_share(self, modules: Sequence[str]) -> float:
        """The share of the models' forward time in 16 bit that these modules take."""
        whole = sum(self.errors[root].seconds for root in self.roots())
        return sum(self.errors[module].seconds for module in modules) / whole if whole else 0.0


def read(folder: Path) -> Tree:
    """The last word of the instrument in a trial's folder."""
    chart = RunChart(facts_of(folder))
    chart.refresh()
    said = [fact for each in chart.processes.values() for fact in each.knobs if fact.get("knob") == "compare-halves" and "rows" in fact]
    return Tree(_error(row) for row in said[-1]["rows"]) if said else Tree([])


def _error(row: dict[str, Any]) -> ModuleError:
    return ModuleError(
        module=str(row["module"]), kind=str(row["kind"]), output=float(row["output"]), gradient=float(row["gradient"]),
        vanished=float(row["vanished"]), overflowed=float(row["overflowed"]),
        overflows=int(row["overflows"]) / max(1, int(row["calls"])), seconds=float(row["seconds"]), weights=int(row["weights"]),
        at=place(row["at"]), given=tuple(map(str, row["given"])),
        device=str(row["device"]),
    )  # fmt: skip


def words(error: ModuleError) -> str:
    """One row of the table, for people."""
    parts = [f"output off by {_percent(error.output)}", f"gradient by {_percent(error.gradient)}"]
    if error.overflowed:
        parts.append(f"{_percent(error.overflowed)} overflow in {_percent(min(error.overflows, 1.0))} of the calls")
    if error.vanished >= 0.001:
        parts.append(f"{_percent(error.vanished)} vanish")
    return ", ".join(parts)


def _percent(share: float) -> str:
    if share >= 10:
        return f"{share:.0f} times its size"
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.2g} %" if share >= 1e-6 else "0 %"
