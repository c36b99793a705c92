"""Runs a program twice at the same time: as it is, and under `trainsleuth run`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

Done = subprocess.CompletedProcess[str]
Command = Sequence[str] | Callable[[str], Sequence[str]]


def run(
    command: Sequence[str], cwd: Path, environment: Mapping[str, str] | None = None, given: str = "", limit: float = 240
) -> Done:
    return subprocess.run(
        list(command), cwd=cwd, env=environment, input=given, capture_output=True, text=True, timeout=limit, check=False
    )


def under_watch(command: Sequence[str], case: Path) -> list[str]:
    return [sys.executable, "-m", "trainsleuth", "run", "--quiet", "--case", str(case), "--", *command]


def both_ways(command: Command, cwd: Path, **options: Any) -> tuple[Done, Done, dict[str, Any]]:
    """The program as it is, the same under observation, and the report of the latter."""
    make = command if callable(command) else lambda _: command
    with ThreadPoolExecutor(2) as pool:
        plain = pool.submit(run, make("plain"), cwd, **options)
        watched = pool.submit(run, under_watch(make("watched"), cwd / "case"), cwd, **options)
        return plain.result(), watched.result(), report_of(cwd / "case")


def report_of(case: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((case / "report.json").read_text(encoding="utf-8"))
    return found
