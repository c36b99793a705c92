"""Helpers of the reader tests: a text as facts, and the points among them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from trainsleuth.readers import text


class At(NamedTuple):
    value: float
    step: int | None = None
    epoch: float | None = None


def facts_of(content: str | bytes) -> list[dict[str, Any]]:
    with tempfile.NamedTemporaryFile(suffix=".log") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
        file.flush()
        return list(text.read(Path(file.name)))


def points_of(content: str | bytes) -> dict[str, list[At]]:
    """Points by name (with their prefix), in the order of the lines."""
    found: dict[str, list[At]] = {}
    for fact in facts_of(content):
        if fact["k"] != "points":
            continue
        name = f"{fact['prefix']}/{fact['name']}" if fact["prefix"] else fact["name"]
        count = len(fact["values"])
        rows = zip(fact["values"], fact["steps"] or [None] * count, fact["epochs"] or [None] * count)
        found.setdefault(name, []).extend(At(*row) for row in rows)
    return found
