"""Writes facts: one append-only file of JSON lines per process, no locks, bounded in size."""

from __future__ import annotations

import json
import math
import os
import time
from typing import Any, Callable, Dict, List, Optional

SCHEMA = 1
ROOM = 48 * 1024 * 1024  # a process's ordinary facts end here
ROOM_FOR_LAST_WORDS = 2 * 1024 * 1024
LAST_WORDS = frozenset({"crash", "exit", "probe_off", "windows", "stop"})


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


class FactWriter:
    """Appends facts of this process; made anew in a forked child."""

    def __init__(self, folder: str, header: Callable[[], Dict[str, Any]]) -> None:
        self._folder = folder
        self._header = header
        self._file: Optional[int] = None
        self._pid = 0
        self._bytes = 0
        self._broken = False
        self._said: set[Any] = set()
        self.when_redirected: List[Callable[[], None]] = []
        self.before_exit: List[Callable[[], None]] = []

    def write(self, k: str, /, **fields: Any) -> None:
        """Append one fact. A disk that is full or gone ends the writing, never the training."""
        if self._broken:
            return
        try:
            if self._pid != os.getpid():
                self._open()
            if self._bytes > ROOM and (k not in LAST_WORDS or self._bytes > ROOM + ROOM_FOR_LAST_WORDS):
                return
            line = json.dumps(plain({"k": k, "t": time.time(), **fields}), separators=(",", ":")).encode() + b"\n"
            self._bytes += os.write(self._file, line)  # type: ignore[arg-type]
        except OSError:
            self._broken = True

    def once(self, key: Any, k: str, /, **fields: Any) -> None:
        if key not in self._said:
            self._said.add(key)
            self.write(k, **fields)

    def _open(self) -> None:
        self._pid = os.getpid()
        name = f"{self._pid}-{time.time_ns() // 1000:x}.jsonl"
        self._file = os.open(os.path.join(self._folder, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._bytes = 0
        self.write("process", schema=SCHEMA, **self._header())

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
