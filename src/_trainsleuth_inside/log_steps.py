"""The counters that loggers are given: steps that go back, points that W&B throws away, writers that share a folder.

All of it is bookkeeping beside the logger: what a call will do is known from its arguments and from the calls before it.
"""

from __future__ import annotations

import os
import weakref
from typing import Any, Dict, List, Optional, Set, Tuple

from _trainsleuth_inside.facts import FactWriter
from _trainsleuth_inside.places import Place

MOST_NAMES = 1000
MOST_LISTED = 1000  # lost points that are written down one by one
MOST_DEPTH = 4


def _worth_writing(count: int) -> bool:
    return count <= 8 or count & (count - 1) == 0


def as_step(value: Any) -> Optional[int]:
    """A step as a number, if it is one; tensors are not looked into."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if type(value).__module__ == "numpy" or isinstance(value, float):
        try:
            return int(value)
        except (TypeError, ValueError, OverflowError):
            return None
    return None


class StepBook:
    """Of each name in each logger, the highest step so far and how many points came below it."""

    def __init__(self, facts: FactWriter) -> None:
        self._facts = facts
        self._rows: Dict[Tuple[Any, str], List[Any]] = {}

    def point(self, logger: str, target: Any, name: str, step: Optional[int], at: Optional[Place]) -> None:
        row = self._rows.get((target, name))
        if row is None:
            if len(self._rows) < MOST_NAMES:
                self._rows[(target, name)] = [step, at, 0, 1 if step is None else 0]
            return
        if step is None:
            row[3] += 1
            if row[0] is None and row[3] >= 16 and _worth_writing(row[3]):
                self._facts.write("log_stepless", logger=logger, name=name, count=row[3], at=at)
        elif row[0] is None or step >= row[0]:
            row[0], row[1] = step, at
        else:
            row[2] += 1
            if _worth_writing(row[2]):
                self._facts.write(
                    "log_back", logger=logger, name=name, step=step, most=row[0], count=row[2], at=at, most_at=row[1]
                )


class LostByWandb:
    """Follows W&B's own counter: a record with an older step is dropped whole; a name given twice at an open step is overwritten."""

    def __init__(self, facts: FactWriter) -> None:
        self._facts = facts
        self._runs: Dict[int, List[Any]] = {}  # run: its counter, names given at it, who moved it last
        self._lost = 0

    def logged(self, run: Any, data: Any, step: Any, commit: Any, at: Optional[Place]) -> None:
        if not isinstance(data, dict) or _not_recording(run):
            return
        state = self._runs.get(id(run))
        if state is None:
            start = as_step(getattr(run, "_local_step", None))
            state = self._runs[id(run)] = [start or 0, set(), None]
            weakref.finalize(run, self._runs.pop, id(run), None)
        names = _names(data)
        given = as_step(step)
        if given is not None and given < state[0]:
            self._write(names, given, "older", state, at)
            return
        if given is not None and given > state[0]:
            state[0], state[1] = given, set()
        given_names: Set[str] = state[1]
        again = [name for name in names if name in given_names]
        if again:
            self._write(again, state[0], "overwritten", state, at)
        given_names.update(names)
        state[2] = at
        if commit or (step is None and commit is None):
            state[0] += 1
            state[1] = set()

    def _write(self, names: List[str], step: int, why: str, state: List[Any], at: Optional[Place]) -> None:
        for name in names:
            self._lost += 1
            if self._lost <= MOST_LISTED or _worth_writing(self._lost):
                self._facts.write(
                    "dropped", logger="wandb", name=name, step=step, why=why, current=state[0], at=at, ahead_at=state[2],
                    lost=self._lost,
                )  # fmt: skip


def _not_recording(run: Any) -> bool:
    """Disabled by the user, or attached from another process, where W&B's counter is not ours to know."""
    started_in = getattr(run, "_init_pid", None)
    return bool(getattr(run, "disabled", False)) or (isinstance(started_in, int) and started_in != os.getpid())


def _names(data: Dict[Any, Any], before: str = "", depth: int = 0) -> List[str]:
    found: List[str] = []
    for key, value in list(data.items())[:MOST_NAMES]:
        name = "%s%s" % (before, key)
        if isinstance(value, dict) and value and depth < MOST_DEPTH:
            found.extend(_names(value, name + ".", depth + 1))
        else:
            found.append(name[:120])
    return found


class Writers:
    """Writers of event files, by folder: who made them, whether an older one goes on after a newer one has begun."""

    def __init__(self, facts: FactWriter) -> None:
        self._facts = facts
        self._by_folder: Dict[str, List["_Writer"]] = {}
        self._known: Dict[int, "_Writer"] = {}

    def made(self, writer: Any, folder: Any, at: Optional[Place]) -> None:
        record = _Writer(os.path.abspath(str(folder)), at)
        self._known[id(writer)] = record
        self._by_folder.setdefault(record.folder, []).append(record)
        weakref.finalize(writer, self._forget, id(writer), record)

    def _forget(self, number: int, record: "_Writer") -> None:
        self.closed_record(record)
        if self._known.get(number) is record:
            del self._known[number]

    def closed(self, writer: Any) -> None:
        record = self._known.get(id(writer))
        if record is not None:
            self.closed_record(record)

    def closed_record(self, record: "_Writer") -> None:
        others = self._by_folder.get(record.folder, [])
        if record in others:
            others.remove(record)

    def wrote(self, writer: Any, name: str, at: Optional[Place]) -> None:
        record = self._known.get(id(writer))
        if record is None:
            return
        record.count += 1
        if record.count & (record.count - 1) == 0:
            self._facts.write("writer", folder=record.folder, made_at=record.at, count=record.count, pid=os.getpid())
        together = self._by_folder.get(record.folder, ())
        if len(record.names) < MOST_NAMES:
            record.names.add(name)
        if len(together) > 1:
            self._beside(record, together, name, at)

    def _beside(self, record: "_Writer", together: List["_Writer"], name: str, at: Optional[Place]) -> None:
        """Only once both have written, and the older one still does."""
        newest = together[-1]
        if record is newest or not newest.count:
            return
        record.beside += 1
        if _worth_writing(record.beside):
            self._facts.write(
                "two_writers", folder=record.folder, made_at=record.at, other_at=newest.at, at=at, name=name, count=record.beside,
                same=sorted(record.names & newest.names)[:8],
            )  # fmt: skip


class _Writer:
    def __init__(self, folder: str, at: Optional[Place]) -> None:
        self.folder = folder
        self.at = at
        self.count = 0
        self.beside = 0
        self.names: Set[str] = set()
