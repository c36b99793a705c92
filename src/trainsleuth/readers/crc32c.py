"""CRC-32C, by which TensorBoard's files check their records; two bytes at a time, as Python's zlib knows only the other CRC-32."""

from __future__ import annotations

import struct
from functools import cache

_POLYNOMIAL = 0x82F63B78


@cache
def _table() -> list[int]:
    """What two bytes do to the sum, for each pair of bytes."""
    one = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (_POLYNOMIAL if number & 1 else 0)
        one.append(number)
    half = [one[low] for low in range(256)]
    return [one[(half[pair & 255] ^ pair >> 8) & 255] ^ half[pair & 255] >> 8 for pair in range(65536)]


def crc32c(data: bytes) -> int:
    table = _table()
    pairs = len(data) >> 1
    total = 0xFFFFFFFF
    for pair in struct.unpack_from(f"<{pairs}H", data):
        total = table[(total ^ pair) & 0xFFFF] ^ total >> 16
    if len(data) & 1:
        low = (total ^ data[-1]) & 255
        for _ in range(8):
            low = low >> 1 ^ (_POLYNOMIAL if low & 1 else 0)
        total = total >> 8 ^ low
    return total ^ 0xFFFFFFFF


MASK = 0xA282EAD8  # TFRecord files store the sum rotated by 15 bits, plus this


def masked(data: bytes) -> int:
    """The sum as TFRecord files store it."""
    total = crc32c(data)
    return ((total >> 15 | total << 17) + MASK) & 0xFFFFFFFF


def all_hold(length: int, messages: list[bytes], sums: list[int]) -> bool:
    """Whether the masked sums of many messages of one length hold, by one sum only.

    A CRC is linear: the sum of messages laid over each other by XOR is the XOR of their sums (and, of an even number, of the sum of
    nothing but zeros). So one sum in Python checks them all.
    """
    over, total = 0, 0
    number = int.from_bytes
    for message in messages:
        over ^= number(message, "little")
    for stored in sums:
        total ^= (stored - MASK) & 0xFFFFFFFF
    expected = crc32c(over.to_bytes(length, "little"))
    if len(messages) % 2 == 0:
        expected ^= crc32c(bytes(length))
    return (expected >> 15 | expected << 17) & 0xFFFFFFFF == total
