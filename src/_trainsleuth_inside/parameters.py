"""The book of parameters: every one that a called model or an optimizer holds, by identity, with its names and its past."""

from __future__ import annotations

import weakref
from typing import Any, Dict, Iterable, List, Optional, Tuple

from _trainsleuth_inside.aside import readable
from _trainsleuth_inside.places import Place

MOST_ROWS = 4000
FINGERPRINT = 8


class ParameterRecord:
    __slots__ = ("fingerprint", "frozen_at", "number", "put_in", "ref")

    def __init__(self, number: int, parameter: Any) -> None:
        self.number = number
        self.ref = weakref.ref(parameter)
        self.frozen_at: Optional[Place] = None
        self.put_in: Optional[Tuple[Place, float]] = None  # the line that put it into a module once an optimizer was there, and when
        self.fingerprint: Any = None


class ParameterBook:
    def __init__(self, watch: Any) -> None:
        self._watch = watch
        self._records: Dict[int, ParameterRecord] = {}
        self._next = 0

    def number(self, parameter: Any) -> int:
        return self.record(parameter).number

    def record(self, parameter: Any) -> ParameterRecord:
        key = id(parameter)
        known = self._records.get(key)
        if known is not None and known.ref() is parameter:
            return known
        self._next += 1
        record = self._records[key] = ParameterRecord(self._next, parameter)
        return record

    def alive(self) -> List[Any]:
        return [parameter for record in self._records.values() if (parameter := record.ref()) is not None]

    def describe(self, named: Iterable[Tuple[str, Any]]) -> List[List[Any]]:
        """Rows for a fact: number, name, shape, type, trainable, the line that froze it, the line that put it into its module and when."""
        rows: List[List[Any]] = []
        for name, parameter in named:
            if len(rows) >= MOST_ROWS:
                break
            record = self.record(parameter)
            dtype = str(parameter.dtype).replace("torch.", "")
            shape = [] if lazy(parameter) else list(parameter.shape)
            rows.append([record.number, name, shape, dtype, bool(parameter.requires_grad), record.frozen_at, record.put_in])
        return rows

    def remember(self, parameter: Any) -> None:
        """Take a fingerprint, so that a later look can tell whether the parameter ever moved."""
        record = self.record(parameter)
        if record.fingerprint is None and not _unreadable(parameter):
            record.fingerprint = _few(parameter).clone()

    def moved(self, parameter: Any) -> Optional[bool]:
        """Whether it changed since its fingerprint; None when that cannot be told."""
        record = self.record(parameter)
        if record.fingerprint is None or _unreadable(parameter):
            return None
        now = _few(parameter)
        if now.shape != record.fingerprint.shape:
            return True
        if not bool((now == record.fingerprint).all()):
            return True
        return False


def _few(parameter: Any) -> Any:
    flat = parameter.detach().reshape(-1) if parameter.is_contiguous() else parameter.detach().flatten()[:FINGERPRINT]
    stride = max(1, flat.numel() // FINGERPRINT)
    return flat[::stride][:FINGERPRINT]


def _unreadable(parameter: Any) -> bool:
    """Values on a device would make the program wait; those of a meta or lazy tensor do not exist."""
    return lazy(parameter) or not readable(parameter) or parameter.device.type != "cpu" or parameter.numel() == 0


def lazy(parameter: Any) -> bool:
    """A parameter of a lazy module that has no shape yet."""
    return type(parameter).__name__ == "UninitializedParameter"
