"""TensorBoard event files: every scalar in the order in which it was written, steps that go backwards among them.

A file is a row of TFRecords, each an `Event` message. Most events hold one scalar and look alike but for time, step and value, so
the bytes around these are remembered and compared instead of decoded again. A damaged record is passed over and counted; where
the framing itself is damaged, reading goes on at the next header whose checksum holds.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from trainsleuth.readers.crc32c import all_hold, masked
from trainsleuth.readers.kinds import Fact, columns, point, skipped
from trainsleuth.readers.wire import BYTES, FIXED32, VARINT, NotAMessage, double, fields, inner, signed, varint

NAME = "TensorBoard event file"
TOGETHER = True
CHUNK = 1 << 20
LARGEST_KEPT = 16 << 20  # a record beyond this holds images or a graph, and is stepped over on the disk
CHECKED = 4096  # bytes; a larger record holds no lone scalar, and its sum would take longer than its reading
HEADER = 12
MOST_SHAPES = 4096
MOST_NAMES = 500
_MAYBE_HEADER = re.compile(rb"\0{5}[^\0](?=...)", re.DOTALL)  # the upper bytes of a sensible length, and a sum
_HEAD = struct.Struct("<QI")
_SUM = struct.Struct("<I")
_TIME = struct.Struct("<d")
_VALUE = struct.Struct("<f")
_NUMBERS = {
    1: "f",
    2: "d",
    3: "i",
    4: "B",
    5: "h",
    6: "b",
    9: "q",
    17: "H",
    19: "e",
    22: "I",
    23: "Q",
}  # by TensorFlow's DataType
_BFLOAT16 = 14


def recognises(path: Path, head: bytes) -> bool:
    """By the frame of its first record; an empty file by its name."""
    if len(head) >= HEADER:
        length, checksum = _HEAD.unpack_from(head)
        return bool(length < 1 << 40 and masked(head[:8]) == checksum)
    return "tfevents" in path.name


def read(path: Path) -> Iterator[Fact]:
    yield {"k": "source", "format": NAME, "path": str(path)}
    try:
        with path.open("rb") as file:
            events = _Events(file)
            yield from events.facts()
            if events.span is not None:
                names = sorted(events.names)[:MOST_NAMES]
                yield {"k": "writer", "path": path.name, "first": events.span[0], "last": events.span[1], "names": names}
    except OSError as problem:
        yield skipped(f"cannot be read: {problem.strerror}", 1, 0)


class _Events:
    """One pass over a file. `run` counts the session starts, after which TensorBoard drops what lies ahead."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._headers: dict[bytes, int] = {}  # headers whose sum was checked: the length they give
        self._names: dict[bytes, str] = {}  # the bytes of a summary with one scalar, but for its value
        self._columns: dict[str, tuple[list[float], list[int], list[int], list[float]]] = {}
        self.names: set[str] = set()
        self.span: tuple[float, float] | None = None  # when the first and the last scalar was written
        self._records = 0
        self._run = 0
        self._skipped: dict[str, list[int]] = {}  # what: how many, the first

    def facts(self) -> Iterator[Fact]:
        for records, sums in self._chunks():
            self._forget_damaged(records, sums)
            for record in records:
                self._records += 1
                if not self._plain_scalar(record):
                    yield from self._other(record)
            yield from self._gathered()
        for what, (count, first) in self._skipped.items():
            yield skipped(what, count, first)

    def _skip(self, what: str, before: int = 0) -> None:
        row = self._skipped.setdefault(what, [0, self._records + before + 1])
        row[0] += 1

    def _gathered(self) -> Iterator[Fact]:
        """The scalars since the last time, by their names."""
        for name, (values, lines, steps, times) in self._columns.items():
            self.names.add(name)
            first, last = min(times), max(times)
            self.span = (first, last) if self.span is None else (min(first, self.span[0]), max(last, self.span[1]))
            yield columns(name, values, lines, steps=steps, times=times, run=self._run)
        self._columns.clear()

    # -- frames ----------------------------------------------------------------------------------------------------

    def _chunks(self) -> Iterator[tuple[list[bytes], list[int]]]:
        """The records that end in each stretch of the file, and their sums as stored."""
        data = b""
        known, stored_sum = self._headers.get, _SUM.unpack_from
        while True:
            more = self._file.read(self._wanted(data))
            if not more:
                break
            data, at = data + more, 0
            records: list[bytes] = []
            sums: list[int] = []
            while len(data) - at >= HEADER:
                length = known(data[at : at + HEADER])
                if length is None:
                    length = self._checked_length(data[at : at + HEADER])
                    if length is None:
                        self._skip("damaged stretch", len(records))
                        data, at = self._next_header(data, at + 1)
                        continue
                start = at + HEADER
                end = start + length
                if end + 4 > len(data):
                    if length > LARGEST_KEPT:
                        self._skip("record of more than 16 MB", len(records))
                        self._file.seek(end + 4 - len(data), 1)
                        data, at = b"", 0
                    break
                records.append(data[start:end])
                sums.append(stored_sum(data, end)[0])
                at = end + 4
            data = data[at:]
            yield records, sums
        if data:
            self._skip("unfinished record at the end (still being written, or cut off)")

    def _wanted(self, rest: bytes) -> int:
        """How much to read: a chunk, or what the record needs that has begun."""
        length = self._checked_length(rest[:HEADER]) if len(rest) >= HEADER else None
        return max(CHUNK, (length or 0) + HEADER + 4)

    def _forget_damaged(self, records: list[bytes], sums: list[int]) -> None:
        """Empty the records whose sum does not hold. Large ones are believed: they hold no lone scalar, and would take long."""
        by_length: dict[int, list[int]] = {}
        for index, record in enumerate(records):
            by_length.setdefault(len(record), []).append(index)
        for length, indices in by_length.items():
            if length <= CHECKED and not all_hold(length, [records[i] for i in indices], [sums[i] for i in indices]):
                for index in indices:
                    if masked(records[index]) != sums[index]:
                        records[index] = b""
                        self._skip("damaged record", index)

    def _checked_length(self, header: bytes) -> int | None:
        length, checksum = _HEAD.unpack(header)
        if masked(header[:8]) != checksum:
            return None
        if len(self._headers) < MOST_SHAPES:
            self._headers[header] = length
        return int(length)

    def _next_header(self, data: bytes, at: int) -> tuple[bytes, int]:
        """From a place that makes no sense to the next header that does; lengths beyond 2^24 are not looked for."""
        while True:
            for found in _MAYBE_HEADER.finditer(data, at + 3):
                start = found.start() - 3
                if self._checked_length(data[start : start + HEADER]) is not None:
                    return data, start
            more = self._file.read(CHUNK)
            if not more:
                return b"", 0
            data, at = data[max(at, len(data) - HEADER) :] + more, 0

    # -- events ----------------------------------------------------------------------------------------------------

    def _plain_scalar(self, record: bytes) -> bool:
        """Gather the common event: time, step, and a summary with one `simple_value`; False if it looks otherwise."""
        if len(record) < 16 or record[0] != 0x09:
            return False
        at, step = 9, 0
        if record[9] == 0x10:
            at = 10
            byte = record[at]
            shift = 0
            while byte > 127 and at + 1 < len(record):
                step |= (byte & 127) << shift
                shift += 7
                at += 1
                byte = record[at]
            step |= byte << shift
            at += 1
            if step >> 63:
                step = signed(step)
        around = record[at:-4]
        name = self._names.get(around)
        if name is None:
            name = _scalar_name(around)
            if name is None:
                return False
            if len(self._names) < MOST_SHAPES:
                self._names[around] = name
        column = self._columns.get(name)
        if column is None:
            column = self._columns[name] = ([], [], [], [])
        column[0].append(_VALUE.unpack_from(record, len(record) - 4)[0])
        column[1].append(self._records)
        column[2].append(step)
        column[3].append(_TIME.unpack_from(record, 1)[0])
        return True

    def _other(self, record: bytes) -> Iterator[Fact]:
        try:
            time, step, summary = None, 0, b""
            for number, wire, value in fields(record):
                if number == 1:
                    time = double(value)
                elif number == 2 and wire == VARINT and isinstance(value, int):
                    step = signed(value)
                elif number == 5 and isinstance(value, bytes):
                    summary = value
                elif number == 7 and isinstance(value, bytes) and (1, VARINT, 1) in list(fields(value)):
                    yield from self._gathered()
                    self._run += 1
            for entry in inner(summary, 1):
                yield from self._entry(entry, step, time)
        except NotAMessage:
            self._skip("record that is no event")

    def _entry(self, entry: bytes, step: int, time: float | None) -> Iterator[Fact]:
        name, value, metadata = "", None, b""
        for number, wire, content in fields(entry):
            if number == 1 and isinstance(content, bytes):
                name = content.decode("utf-8", "replace")
            elif number == 2 and wire == FIXED32 and isinstance(content, bytes):
                value = _VALUE.unpack(content)[0]
            elif number == 8 and isinstance(content, bytes):
                value = _lone_number(content)
            elif number == 9 and isinstance(content, bytes):
                metadata = content
        if value is not None:
            yield point(name, value, step=step, t=time, at=self._records, run=self._run)
        elif name == "_hparams_/session_start_info":
            yield from _hyperparameters(metadata)


def _scalar_name(around: bytes) -> str | None:
    """The tag, if the bytes are `summary { value { tag, simple_value` up to the value itself."""
    try:
        if around[:1] != b"\x2a":
            return None
        size, at = varint(around, 1)
        if size != len(around) + 4 - at or around[at : at + 1] != b"\x0a":
            return None
        size, at = varint(around, at + 1)
        if size != len(around) + 4 - at or around[at : at + 1] != b"\x0a":
            return None
        size, at = varint(around, at + 1)
        if at + size + 1 != len(around) or around[-1] != 0x15:
            return None
        return around[at : at + size].decode("utf-8", "replace")
    except NotAMessage:
        return None


def _lone_number(tensor: bytes) -> float | None:
    """The number in a tensor of one element, whichever of its fields holds it."""
    kind = 0
    found: list[float] = []
    for number, wire, value in fields(tensor):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number == 2 and isinstance(value, bytes) and _elements(value) != 1:
            return None
        elif number == 4 and isinstance(value, bytes) and value:
            return _from_bytes(value, kind)
        elif number == 5 and isinstance(value, bytes):
            found.extend(_row(value, "f"))
        elif number == 6 and isinstance(value, bytes):
            found.extend(_row(value, "d"))
        elif number in (7, 10, 11, 13, 16, 17):
            numbers = (
                [value] if wire == VARINT and isinstance(value, int) else _varints(value) if isinstance(value, bytes) else []
            )
            found.extend(_half(one, kind) if number == 13 else float(signed(one)) for one in numbers)
    return found[0] if len(found) == 1 else None


def _elements(shape: bytes) -> int:
    sizes = [next((v for n, _, v in fields(one) if n == 1 and isinstance(v, int)), 0) for one in inner(shape, 2)]
    return math.prod(sizes)


def _row(value: bytes, code: str) -> list[float]:
    size = struct.calcsize(code)
    if not value or len(value) % size or len(value) > 64:
        return []
    return list(struct.unpack(f"<{len(value) // size}{code}", value))


def _varints(value: bytes) -> list[int]:
    found: list[int] = []
    at = 0
    while at < len(value) and len(found) < 3:
        one, at = varint(value, at)
        found.append(one)
    return found


def _half(bits: int, kind: int) -> float:
    if kind == _BFLOAT16:
        return float(struct.unpack("<f", struct.pack("<HH", 0, bits & 0xFFFF))[0])
    return float(struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0])


def _from_bytes(value: bytes, kind: int) -> float | None:
    if kind == _BFLOAT16 and len(value) == 2:
        return _half(value[0] | value[1] << 8, kind)
    code = _NUMBERS.get(kind)
    if code is None or struct.calcsize(f"<{code}") != len(value):
        return None
    return float(struct.unpack(f"<{code}", value)[0])


def _hyperparameters(metadata: bytes) -> Iterator[Fact]:
    """What `add_hparams` wrote: SummaryMetadata, its plugin data, the session's start, a map from name to value."""
    for plugin in inner(metadata, 1):
        for content in inner(plugin, 2):
            for start in inner(content, 3):
                for pair in inner(start, 1):
                    name = next((text.decode("utf-8", "replace") for text in inner(pair, 1)), "")
                    for value in inner(pair, 2):
                        for number, wire, held in fields(value):
                            yield {"k": "setting", "name": name, "value": _held(number, wire, held)}


def _held(number: int, wire: int, value: int | bytes) -> float | str | bool | None:
    if number == 2:
        return double(value)
    if number == 3 and wire == BYTES and isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return bool(value) if number == 4 else None
