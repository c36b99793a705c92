"""The wire format of protocol buffers, as far as a reader needs it: fields by number, nothing decoded that nobody asks for."""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Field = tuple[int, int, "int | bytes"]  # number, kind of wire, value; fixed numbers come as their bytes
MOST_FIELDS = 100_000


class NotAMessage(ValueError):
    """These bytes are no protocol buffer message."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """The number that begins at `at`, and where it ends."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise NotAMessage
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def signed(value: int) -> int:
    """A varint as the int64 that it stands for."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def fields(data: bytes) -> Iterator[Field]:
    """The fields of one message in their order. Raises NotAMessage where the bytes make no sense."""
    at = count = 0
    while at < len(data):
        count += 1
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if number == 0 or count > MOST_FIELDS:
            raise NotAMessage
        if wire == VARINT:
            value, at = varint(data, at)
            yield number, wire, value
            continue
        if wire == BYTES:
            size, at = varint(data, at)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise NotAMessage
        if at + size > len(data):
            raise NotAMessage
        yield number, wire, data[at : at + size]
        at += size


def inner(data: bytes, number: int) -> Iterator[bytes]:
    """Each field of this number that holds bytes: text, or a message of its own."""
    for found, _, value in fields(data):
        if found == number and isinstance(value, bytes):
            yield value


def double(value: int | bytes) -> float:
    if not isinstance(value, bytes) or len(value) != 8:
        raise NotAMessage
    number: float = struct.unpack("<d", value)[0]
    return number
