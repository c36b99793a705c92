"""What an examination of saved tensors has found: who changed a tensor that a backward still needed, and which graph was freed."""

from __future__ import annotations

from typing import Any

from trainsleuth.case.chart import ProcessChart
from trainsleuth.case.entries import Place, place
from trainsleuth.case.reading import Fact
from trainsleuth.rules.kinds import Missing, Spot

SYMPTOMS = ("crash/exception",)


def mutation_of(chart: ProcessChart) -> tuple[Fact, dict[str, Any]] | None:
    for fact in reversed(chart.examined):
        if fact.get("result") == "mutation" and isinstance(fact.get("mutation"), dict):
            return fact, fact["mutation"]
    return None


def freed_of(chart: ProcessChart) -> Fact | None:
    return next((fact for fact in reversed(chart.examined) if fact.get("result") == "freed graph"), None)


def by_a_step(mutation: dict[str, Any]) -> bool:
    """Whether an optimizer's step made the change."""
    return bool(mutation.get("writes")) and all(write.get("phase") == "step" for write in mutation["writes"])


def missing(chart: ProcessChart) -> Missing:
    last = chart.examined[-1] if chart.examined else None
    return Missing(f"an examination that finds the line ({(last or {}).get('why') or 'trainsleuth prove runs one'})")


def where_changed(mutation: dict[str, Any]) -> list[Spot]:
    """The lines that changed the tensor, the last first: the line that saved it, and the backward that needed it."""
    spots: list[Spot] = []
    for write in reversed(mutation.get("writes") or []):
        spots += spots_of(write.get("at"), write.get("above"), "changes the tensor")
    spots += spots_of(mutation.get("saved_at"), mutation.get("saved_above"), "needs it unchanged for backward")
    spots += spots_of(mutation.get("used_at"), None, "the backward that needs it")
    return spots


def spots_of(at: Any, above: Any, note: str) -> list[Spot]:
    known = place(at)
    if known is None:
        return []
    callers = [caller for row in above or [] if (caller := place(row))]
    return [Spot(known, note)] + [Spot(caller, "called from here") for caller in callers[:1]]


def versions(mutation: dict[str, Any]) -> list[str]:
    """The story of the tensor, version by version."""
    what = f"parameter {mutation['parameter']}" if mutation.get("parameter") else f"a tensor {mutation['shape']}"
    lines = [
        f"{_saver(mutation)} saved {what} at version {mutation['saved_version']}; in backward it was at {mutation['version']}"
    ]
    for write in mutation.get("writes") or []:
        at = place(write.get("at"))
        line = f"line {at.line}: " if at else ""
        change = (
            f"version {write['version']} → {write['version'] + 1}" if write.get("seen_by_torch") else "the version stays the same"
        )
        lines.append(f"{line}{_op(write['op'])} wrote into it ({change})")
    if mutation.get("more_writes"):
        lines.append(f"and {mutation['more_writes']} writes before these")
    return lines


def _saver(mutation: dict[str, Any]) -> str:
    name = str(mutation["saver"]).split("Backward")[0]
    module = f" of module {mutation['module']}" if mutation.get("module") else ""
    return f"{name}{module}"


def _op(name: str) -> str:
    return name.removeprefix("aten.").split(".")[0]


def first_user_place(chart: ProcessChart) -> list[Place]:
    """The user's lines of the traceback, innermost first."""
    return [at for frame in reversed((chart.crash or {}).get("frames") or []) if (at := place(frame))]
