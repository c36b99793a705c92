"""Which files of weights a run has written, so that a trial can start from the files that the run started from.

A program that finds a checkpoint of its own goes on from it. A second run would then start where the first one ended.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainsleuth.case.folder import Case

SUFFIXES = (".pt", ".pth", ".ckpt", ".safetensors", ".keras", ".weights.h5")  # and nothing in which data is kept
MOST_ENTRIES = 20_000
MOST_SECONDS = 0.3
NOT_ENTERED = frozenset([".git", ".trainsleuth", ".venv", "venv", "node_modules", "__pycache__"])


@dataclass(frozen=True)
class Written:
    """A file of weights that the run wrote, and the last window that had been made by then."""

    path: Path
    window: int


def weights_in(folder: Path) -> list[str] | None:
    """Files below the folder that may hold weights; None if there is too much below it to look at."""
    ends = time.monotonic() + MOST_SECONDS
    found = []
    for number, path in enumerate(_below(folder)):
        if number >= MOST_ENTRIES or time.monotonic() > ends:
            return None
        if path.endswith(SUFFIXES):
            found.append(os.path.relpath(path, folder))
    return found


def written_by(case: Case, window_times: Sequence[tuple[int, float]]) -> list[Written]:
    """The files of weights that were not there when the run began, and that nobody has changed since it ended."""
    before, started, ended = (case.about.get(key) for key in ("weights_before", "started", "ended"))
    if not isinstance(before, list) or not isinstance(started, float):
        return []
    found = []
    for name in sorted(set(weights_in(case.cwd) or ()) - set(before)):
        path = case.cwd / name
        try:
            changed = path.stat().st_mtime
        except OSError:
            continue
        if started <= changed <= (ended if isinstance(ended, float) else changed) + 1:
            found.append(Written(path, _window_at(changed, window_times)))
    return found


def _window_at(moment: float, window_times: Sequence[tuple[int, float]]) -> int:
    index = bisect_left([when for _, when in window_times], moment)
    return window_times[index - 1][0] if index else 0


def _below(folder: Path) -> Iterator[str]:
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name not in NOT_ENTERED:
                            waiting.append(entry.path)
                    else:
                        yield entry.path
        except OSError:
            continue
