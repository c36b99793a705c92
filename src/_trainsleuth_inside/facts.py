"""Writes facts: one append-only file of JSON lines per process, no locks, bounded in size."""

from __future__ import annotations

import json
import math
import os
import time
from typing import Any, Callable, Dict, List, Optional

SCHEMA = 1
ROOM = 40 << 20  # bytes of a process; of a large world each process has less
LEAST_ROOM = 1 << 20
RANKS_WITH_FULL_ROOM = 4
LAST_WORDS = frozenset({"crash", "exit", "probe_off", "stop"})
DETAIL = frozenset({"params", "deep", "loss_call", "metric", "calls", "half_gradients", "half_params"})  # may be thinned; the curves may not


def plain(value: Any) -> Any:
    """The value as JSON can hold it: numbers that are not finite are tagged, the unknown becomes text."""
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return {"~": "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")}
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    return str(value)


_as_it_is = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False, default=plain).encode


def encoded(fact: Dict[str, Any]) -> bytes:
    """One line. Most facts need no tags, and the encoder is quicker than the search for what to tag."""
    try:
        return _as_it_is(fact).encode() + b"\n"
    except (TypeError, ValueError):
        return json.dumps(plain(fact), separators=(",", ":")).encode() + b"\n"


class FactWriter:
    """Appends facts of this process; made anew in a forked child.

    The room is kept by thinning: three quarters of it are for detail, of which every fact is written until half of that is
    used, then every fourth until half of the rest is used, then every sixteenth, and so on: it gets rarer and hardly ends.
    """

    def __init__(self, folder: str, header: Callable[[], Dict[str, Any]]) -> None:
        self._folder = folder
        self._header = header
        self._file: Optional[int] = None
        self._pid = 0
        self._bytes = 0
        self._room = ROOM
        self._detail_bytes = 0
        self._offered: Dict[str, int] = {}
        self._broken = False
        self._said: set[Any] = set()
        self.when_opened: List[Callable[[str], None]] = []  # told in which folder a process has begun to write
        self.when_redirected: List[Callable[[], None]] = []
        self.before_exit: List[Callable[[], None]] = []

    def write(self, k: str, /, **fields: Any) -> None:
        """Append one fact. A disk that is full or gone ends the writing, never the training."""
        if self._broken:
            return
        try:
            if self._pid != os.getpid():
                self._open()
            if not self._may_be_written(k):
                return
            written = os.write(self._file, encoded({"k": k, "t": time.time(), **fields}))  # type: ignore[arg-type]
            self._bytes += written
            if k in DETAIL:
                self._detail_bytes += written
        except OSError:
            self._broken = True

    def _may_be_written(self, k: str) -> bool:
        if k in LAST_WORDS:
            return True
        if k not in DETAIL:
            return self._bytes < self._room
        room = 0.75 * self._room
        if self._detail_bytes <= 0.5 * room:
            return True
        left = max(1.0, room - self._detail_bytes) / room
        offered = self._offered[k] = self._offered.get(k, 0) + 1
        return offered % (1 << 2 * int(-math.log2(left))) == 0

    def once(self, key: Any, k: str, /, **fields: Any) -> None:
        if key not in self._said:
            self._said.add(key)
            self.write(k, **fields)

    def _open(self) -> None:
        self._pid = os.getpid()
        name = f"{self._pid}-{time.time_ns() // 1000:x}.jsonl"
        self._file = os.open(os.path.join(self._folder, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._bytes = self._detail_bytes = 0
        header = self._header()
        ranks = header.get("world") or 1
        self._room = max(LEAST_ROOM, ROOM * RANKS_WITH_FULL_ROOM // max(RANKS_WITH_FULL_ROOM, ranks))
        self.write("process", schema=SCHEMA, **header)
        for reaction in self.when_opened:
            reaction(self._folder)

    @property
    def silent(self) -> bool:
        """Whether this process has written nothing yet."""
        return self._pid != os.getpid()

    def redirect(self, folder: str) -> None:
        self._folder = folder
        self.forked()
        for reaction in self.when_redirected:
            reaction()

    def forked(self) -> None:
        """In the child of a fork: the parent's file is not ours. The next fact opens a new one."""
        if self._file is not None:
            os.close(self._file)
        self._file, self._pid, self._broken = None, 0, False
        self._said.clear()
