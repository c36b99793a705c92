"""Makes the remedies for a finding: each way of its rule is tried on the source; where none fits, advice with the lines to look at."""

from __future__ import annotations

import os

from trainsleuth.remedies.catalogue import REMEDIES
from trainsleuth.remedies.desk import NO_LINE, Desk, Diagnosed
from trainsleuth.remedies.patch import Patch
from trainsleuth.remedies.source import NotPossible

STRICT = "TRAINSLEUTH_STRICT"  # in our own tests: what fails is raised


def propose(finding: Diagnosed) -> Patch | None:
    """What cures a finding, advice where no rewrite is sound, or None where its rule has no remedy."""
    return next(iter(candidates(finding)), None)


def candidates(finding: Diagnosed) -> list[Patch]:
    """What is worth trying, best first; a single advice where nothing is."""
    remedy = REMEDIES.get(finding.rule)
    if remedy is None:
        return []
    found: list[Patch] = []
    reasons: list[str] = []
    for way in remedy.ways:
        desk = Desk()
        try:
            made = way(desk, finding)
            patch = made if isinstance(made, Patch) else desk.patch(made)
        except NotPossible as problem:
            reasons.append(str(problem))
            continue
        except Exception as problem:  # a defect of ours must not take the other patches, and the proof, from the user
            if STRICT in os.environ:
                raise
            reasons.append(f"a rewrite of ours failed on this source ({type(problem).__name__}: {problem}); please report it")
            continue
        if not any((patch.files, patch.environment) == (other.files, other.environment) for other in found):
            found.append(patch)
    return found or [advice(finding, remedy.advice, sorted(reasons, key=lambda reason: reason == NO_LINE))]


def advice(finding: Diagnosed, text: str, reasons: list[str]) -> Patch:
    """Words instead of a patch, and the lines that they are about."""
    several = f"none of {len(reasons)} known rewrites fits; the first, because " if len(reasons) > 1 else ""
    why = f" (No patch: {several}{reasons[0]}.)" if reasons else ""
    lines = tuple(f"{place.file}:{place.line}" for place in finding.where[:4])
    return Patch("advice", text + why, lines=lines)
