"""The numbers of all lines of one shape, column by column.

Two ways lead to the same numbers. `SplitTokens` takes the text apart and reads number by number. `DigitGrids` lays lines whose digits stand
at the same places over each other, as a table of bytes, and reads a column of digits at once; it needs numpy and many lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from trainsleuth.readers.stamps import Stamp, moments, seconds
from trainsleuth.readers.text_plan import Plan

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, numpy.dtype[Any]]

FEWEST_ALIKE = 24  # lines of a grid, on average; with fewer it is quicker to read number by number
MOST_DIGITS = 18  # of a whole number of 64 bit
EXACT = 2**53  # whole numbers below it are exact as floats,
EXACT_POWER = 22  # and so are these powers of ten: one division or product of them rounds as reading the text does
LARGEST_COUNT = 10**12  # of steps or epochs
LINE_END = b"~"  # what a table makes of the end of a line

_TOKEN = re.compile(rb"\S+")
_WHOLE = re.compile(rb"[-+]?(\d+)")
_NUMBER = re.compile(rb"[-+]?(?=\.?\d)(\d*)(?:\.(\d*))?(?:[eE]([-+]?\d+))?")
_SECONDS = re.compile(rb"(\d+)(?:[.,](\d+))?")


@cache
def has_numpy() -> bool:
    try:
        import numpy  # noqa: F401
    except ImportError:
        return False
    return True


def keeping(kept: bytes) -> bytes:
    """A table for `bytes.translate` that leaves these signs, and blanks for all others."""
    table = bytearray(byte if byte in kept else 32 for byte in range(256))
    table[10] = LINE_END[0]
    return bytes(table)


class Columns(Protocol):
    """The numbers of lines that are alike. A column that does not hold what it should raises ValueError."""

    def names_are(self, places: list[int], own: tuple[bytes, ...]) -> bool: ...

    def floats(self, index: int) -> list[float]: ...

    def epochs(self, index: int) -> list[float]: ...

    def counts(self, index: int) -> list[int]: ...

    def totals(self, index: int) -> list[int]: ...

    def decimals(self, index: int) -> int: ...

    def moments(self, stamp: Stamp) -> list[float | None]: ...


class SplitTokens:
    """Number by number."""

    def __init__(self, tokens: list[bytes], width: int, lines: list[bytes]) -> None:
        self._tokens = tokens
        self._stride = width + 1  # with the end of the line
        self._lines = lines

    @classmethod
    def of(cls, plan: Plan, lines: list[bytes]) -> SplitTokens | None:
        """None if a line has more numbers than the plan knows, or fewer."""
        tokens = b" \n ".join(lines).translate(plan.table).split()
        stride, ends = plan.tokens + 1, len(lines) - 1
        if len(tokens) != stride * len(lines) - 1 or tokens[plan.tokens :: stride].count(LINE_END) != ends:
            return None
        return cls(tokens, plan.tokens, lines)

    def row(self, row: int, places: list[int]) -> tuple[bytes, ...]:
        start = row * self._stride
        return tuple(self._tokens[start + place] for place in places)

    def names_are(self, places: list[int], own: tuple[bytes, ...]) -> bool:
        return all(self._column(index).count(name) == len(self._lines) for index, name in zip(places, own))

    def floats(self, index: int) -> list[float]:
        return list(map(float, self._column(index)))

    def epochs(self, index: int) -> list[float]:
        numbers = self.floats(index)
        _check(min(numbers), max(numbers))
        return numbers

    def counts(self, index: int) -> list[int]:
        column = self._column(index)
        try:
            numbers = list(map(int, column))
        except ValueError:
            return list(map(int, self.epochs(index)))
        _check(min(numbers), max(numbers))
        return numbers

    def totals(self, index: int) -> list[int]:
        column = self._column(index)
        same = column.count(column[0]) == len(column)
        numbers = [int(column[0])] if same else list(map(int, column))
        _check(min(numbers), max(numbers))
        return numbers * len(column) if same else numbers

    def decimals(self, index: int) -> int:
        column = self._column(index)
        return max(_decimals(column[0]), _decimals(column[-1]))

    def moments(self, stamp: Stamp) -> list[float | None]:
        return moments(stamp, self._lines)

    def _column(self, index: int) -> list[bytes]:
        return self._tokens[index :: self._stride]


class DigitGrids:
    """Digit by digit, of all lines at once; `alike` are the places of lines that differ in nothing but which digits they have."""

    def __init__(self, lines: list[bytes], alike: list[list[int]], spans: list[list[tuple[int, int]]]) -> None:
        import numpy

        self._lines = lines
        self._alike = alike
        self._grids = [_Grid(_at(places, lines), found) for places, found in zip(alike, spans)]
        self._order: Array | None = None  # of the rows of all grids, to stand as their lines do
        if len(alike) > 1:
            self._order = numpy.argsort(numpy.array(list(chain.from_iterable(alike))), kind="stable")
        self._first = min(range(len(alike)), key=lambda grid: alike[grid][0])
        self._last = max(range(len(alike)), key=lambda grid: alike[grid][-1])

    @classmethod
    def of(cls, plan: Plan, lines: list[bytes], alike: list[list[int]]) -> DigitGrids | None:
        """None if a line has more numbers than the plan knows, or fewer."""
        spans = [[match.span() for match in _TOKEN.finditer(lines[places[0]].translate(plan.table))] for places in alike]
        return cls(lines, alike, spans) if all(len(found) == plan.tokens for found in spans) else None

    def names_are(self, places: list[int], own: tuple[bytes, ...]) -> bool:
        return all(grid.always(index, name) for grid in self._grids for index, name in zip(places, own))

    def floats(self, index: int) -> list[float]:
        found: list[float] = self._in_order(lambda grid: grid.floats(index)).tolist()
        return found

    def epochs(self, index: int) -> list[float]:
        numbers = self._in_order(lambda grid: grid.floats(index))
        _check(numbers.min(), numbers.max())
        found: list[float] = numbers.tolist()
        return found

    def counts(self, index: int) -> list[int]:
        if all(grid.is_whole(index) for grid in self._grids):
            return self.totals(index)
        return list(map(int, self.epochs(index)))

    def totals(self, index: int) -> list[int]:
        numbers = self._in_order(lambda grid: grid.whole(index))
        _check(numbers.min(), numbers.max())
        found: list[int] = numbers.tolist()
        return found

    def decimals(self, index: int) -> int:
        return max(_decimals(self._grids[self._first].token(index, 0)), _decimals(self._grids[self._last].token(index, -1)))

    def moments(self, stamp: Stamp) -> list[float | None]:
        try:
            found: list[float | None] = self._in_order(lambda grid: grid.moments(stamp)).tolist()
        except ValueError:
            return moments(stamp, [self._lines[place] for place in sorted(chain.from_iterable(self._alike))])
        return found

    def _in_order(self, column: Callable[[_Grid], Array]) -> Array:
        if self._order is None:
            return column(self._grids[0])
        import numpy

        columns = [column(grid) for grid in self._grids]
        joined: Array = numpy.concatenate(columns)[self._order]
        return joined


class _Grid:
    """Lines of one length whose signs other than digits are the same."""

    def __init__(self, lines: list[bytes], spans: list[tuple[int, int]]) -> None:
        import numpy

        self._np = numpy
        self._lines = lines
        self._spans = spans
        self._bytes: Array = numpy.frombuffer(b"".join(lines), dtype=numpy.uint8).reshape(len(lines), len(lines[0]))

    def token(self, index: int, row: int) -> bytes:
        start, end = self._spans[index]
        return self._lines[row][start:end]

    def always(self, index: int, text: bytes) -> bool:
        start, end = self._spans[index]
        return end - start == len(text) and bool((self._bytes[:, start:end] == self._np.frombuffer(text, dtype=self._np.uint8)).all())

    def is_whole(self, index: int) -> bool:
        return _WHOLE.fullmatch(self.token(index, 0)) is not None

    def whole(self, index: int) -> Array:
        token = self.token(index, 0)
        match = _WHOLE.fullmatch(token)
        if match is None:
            raise ValueError(token)
        if len(match[1]) > MOST_DIGITS:
            return self._one_by_one(index, int)
        start = self._spans[index][0]
        number = self._digits(range(start + match.start(1), start + match.end(1)))
        return -number if token[:1] == b"-" else number

    def floats(self, index: int) -> Array:
        start = self._spans[index][0]
        token = self.token(index, 0)
        match = _NUMBER.fullmatch(token)
        if match is None:
            raise ValueError(token)
        places = [start + place for group in (1, 2) if match[group] for place in range(*match.span(group))]
        after = len(match[2] or b"")
        if len(places) > MOST_DIGITS:
            return self._one_by_one(index, float)
        mantissa = self._digits(places)
        if len(places) > 15 and mantissa.max() >= EXACT:
            return self._one_by_one(index, float)
        number = mantissa.astype(self._np.float64)
        if match[3] is not None:
            scaled = self._scaled(number, start, match, after)
            if scaled is None:
                return self._one_by_one(index, float)
            number = scaled
        elif after:
            number /= float(10**after)
        return -number if token[:1] == b"-" else number

    def moments(self, stamp: Stamp) -> Array:
        """Each minute is understood once; its seconds are added. Rows whose stamp stands elsewhere raise ValueError."""
        match = _SECONDS.fullmatch(self._lines[0][stamp.second : stamp.end])
        if match is None:
            raise ValueError("no seconds")
        numpy = self._np
        minutes = self._bytes[:, stamp.start : stamp.second]
        begins = [0, *(numpy.flatnonzero((minutes[1:] != minutes[:-1]).any(axis=1)) + 1).tolist()]
        known = [seconds(stamp.form, self._lines[row][stamp.start : stamp.second] + b"00") for row in begins]
        if None in known:
            raise ValueError("no minute")
        lengths = numpy.diff([*begins, len(self._lines)])
        places = [stamp.second + place for group in (1, 2) if match[group] for place in range(*match.span(group))]
        after = self._digits(places).astype(numpy.float64) / float(10 ** len(match[2] or b""))
        moment: Array = numpy.repeat(numpy.array(known, dtype=numpy.float64), lengths) + after
        return moment

    def _digits(self, places: list[int] | range) -> Array:
        """The whole number that the digits at these places make."""
        number: Array = self._bytes[:, places[0]].astype(self._np.int64)
        for place in places[1:]:
            number *= 10
            number += self._bytes[:, place]
        number -= sum(48 * 10**power for power in range(len(places)))
        return number

    def _scaled(self, number: Array, start: int, match: re.Match[bytes], after: int) -> Array | None:
        """With their exponents; None where that would round twice."""
        digits = match[3].lstrip(b"+-")
        if len(digits) > 3:
            return None
        power = self._digits(range(start + match.end(3) - len(digits), start + match.end(3)))
        power = (-power if match[3][:1] == b"-" else power) - after
        if int(abs(power).max()) > EXACT_POWER:
            return None
        powers = self._np.array([float(10**exponent) for exponent in range(EXACT_POWER + 1)])
        scaled: Array = self._np.where(power < 0, number / powers[abs(power)], number * powers[abs(power)])
        return scaled

    def _one_by_one(self, index: int, read: Callable[[bytes], Any]) -> Array:
        start, end = self._spans[index]
        return self._np.array([read(line[start:end]) for line in self._lines])


def _at(places: list[int], lines: list[bytes]) -> list[bytes]:
    """The lines at these places, which rise."""
    if places[-1] - places[0] == len(places) - 1:
        return lines[places[0] : places[-1] + 1]
    return list(map(lines.__getitem__, places))


def _check(least: float, most: float) -> None:
    if not -1 <= least <= most <= LARGEST_COUNT:
        raise ValueError("no run is that long")


def _decimals(token: bytes) -> int:
    mantissa, _, exponent = token.lower().partition(b"e")
    digits = len(mantissa.partition(b".")[2])
    return digits - int(exponent) if exponent else digits
