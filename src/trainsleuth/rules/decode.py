"""Decodes a flat loss: which number of classes, divisor and rounding give exactly this value.

ln C is what twelve, ten, a thousand equally likely classes give. Frameworks divide it by the accumulation steps, half
precision rounds it, and a log prints a few digits of the rest. With facts, C and the divisor are known and only the rounding
is asked for; from a bare number the candidates are ranked by how common they are.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass


@dataclass(frozen=True)
class Reading:
    """One way to arrive at a value."""

    classes: int
    divisor: int
    dtype: str
    exact: float

    def words(self) -> str:
        text = f"ln {self.classes}"
        if self.divisor > 1:
            text += f" / {self.divisor}"
        if self.dtype != "float32":
            text += f", rounded in {self.dtype}"
        return text


def rounded(value: float, dtype: str) -> float:
    """The value as the dtype holds it."""
    if dtype == "float16":
        return float(struct.unpack("<e", struct.pack("<e", value))[0])
    if dtype == "bfloat16":
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        return float(struct.unpack("<f", struct.pack("<I", bits))[0])
    if dtype == "float32":
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    return value


def decode_known(value: float, classes: int, divisor: int) -> Reading | None:
    """C and the divisor are facts: which rounding makes ln C / divisor this very value?"""
    for dtype in ("float32", "bfloat16", "float16"):
        expected = rounded(math.log(classes), dtype) / divisor
        if abs(value - expected) <= 4e-6 * expected:
            return Reading(classes, divisor, dtype, expected)
    near = math.log(classes) / divisor
    return Reading(classes, divisor, "float32", near) if abs(value - near) < 0.01 * near else None


def decode_bare(text: str) -> list[Reading]:
    """Candidates for a printed number, most likely first: small divisors that are powers of two before all others."""
    value = float(text)
    digits = len(text.partition(".")[2])
    found = []
    for classes in range(2, 1001):
        for divisor in range(1, 65):
            if abs(math.log(classes) / divisor - value) > 0.01 * value:
                continue
            for dtype in ("float32", "bfloat16", "float16"):
                exact = rounded(math.log(classes), dtype) / divisor
                if f"{exact:.{digits}f}" == f"{value:.{digits}f}":
                    found.append(Reading(classes, divisor, dtype, exact))
                    break
    return sorted(found, key=_how_unusual)


def plausible(reading: Reading) -> bool:
    """Usual enough to be believed of a bare number: 7,000 pairs of classes and divisors explain almost any."""
    return _how_unusual(reading)[0] <= 5


def _how_unusual(reading: Reading) -> tuple[float, int]:
    power = reading.divisor & (reading.divisor - 1) == 0
    cost = math.log2(reading.divisor) + (0 if power else 4) + math.log10(reading.classes)
    cost += 0 if reading.classes in (2, 10, 12, 20, 100, 1000) else 1
    return cost + (0.5 if reading.dtype != "float32" else 0), reading.classes
