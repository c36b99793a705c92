"""Time stamps in log lines: where one stands, and which moment it names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

DAY = 86_400.0
MONTHS = {name: index + 1 for index, name in enumerate(
    (b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec"))}  # fmt: skip
FORMS = (
    re.compile(rb"(?P<y>\d{4})[-/.](?P<mo>\d\d)[-/.](?P<d>\d\d)[ T_](?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d(?:[.,]\d+)?)"),
    re.compile(rb"(?P<mo>\d\d)/(?P<d>\d\d)/(?P<y>\d{4})[ T](?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d(?:[.,]\d+)?)"),
    re.compile(rb"(?P<mo>\d\d)[-/](?P<d>\d\d) (?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d(?:[.,]\d+)?)"),
    re.compile(rb"(?P<name>[A-Z][a-z]{2}) +(?P<d>\d{1,2}) (?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d(?:[.,]\d+)?)"),
    re.compile(rb"\b[IWEF](?P<mo>\d\d)(?P<d>\d\d) (?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d(?:\.\d+)?)"),
    re.compile(rb"(?<![\d:<])(?P<h>\d\d):(?P<mi>\d\d):(?P<s>\d\d(?:[.,]\d+)?)(?![\d:])"),
)
_CLOCK = re.compile(rb"\d\d:\d\d:\d\d")  # what all forms have
NEAR_THE_START = 40
_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class Stamp:
    form: int
    start: int
    end: int
    second: int  # where its seconds begin


def find(line: bytes) -> Stamp | None:
    """The time stamp near the start of a line; a length of time further on (`eta 0:05:00`) is none."""
    head = line[:120]
    if _CLOCK.search(head) is None:
        return None
    for form, pattern in enumerate(FORMS):
        match = pattern.search(head)
        if match is None or match.start() > NEAR_THE_START:
            continue
        if form == len(FORMS) - 1 and line[: match.start()].strip(b" [(|<"):
            continue
        return Stamp(form, match.start(), match.end(), match.start("s"))
    return None


@lru_cache(maxsize=4096)
def seconds(form: int, text: bytes) -> float | None:
    """Unix seconds, as if the clock were UTC; a stamp without a date counts from midnight, without a year from 1972."""
    match = FORMS[form].search(text)
    if match is None:
        return None
    found = match.groupdict()
    whole, _, part = found["s"].replace(b",", b".").partition(b".")
    clock = int(found["h"]) * 3600 + int(found["mi"]) * 60 + int(whole) + (float(b"0." + part) if part else 0.0)
    if "d" not in found:
        return clock
    month = MONTHS.get(found["name"].lower(), 0) if "name" in found else int(found["mo"])
    year, day = int(found.get("y") or 1972), int(found["d"])
    try:
        return (date(year, month, day).toordinal() - _EPOCH) * DAY + clock
    except ValueError:
        return None


def moments(stamp: Stamp, lines: list[bytes]) -> list[float | None]:
    """The moments of lines that all have their stamp at the same place: each minute is understood once, its seconds are added."""
    start, second, end = stamp.start, stamp.second, stamp.end
    try:
        rest = list(map(float, b"\n".join([line[second:end] for line in lines]).replace(b",", b".").split(b"\n")))
        minutes = [line[start:second] for line in lines]
        known = {minute: seconds(stamp.form, minute + b"00") for minute in dict.fromkeys(minutes)}
        return [known[minute] + second for minute, second in zip(minutes, rest)]  # type: ignore[operator]
    except (ValueError, TypeError):
        return [seconds(stamp.form, line[start:end]) for line in lines]


class Clock:
    """Makes times of moments that never jump back by a day: a clock without a date passes midnight."""

    def __init__(self) -> None:
        self._days = 0.0
        self._last: float | None = None

    def times(self, stamp: Stamp, found: list[float | None]) -> list[float | None]:
        if stamp.form != len(FORMS) - 1 or not found:
            return found
        known = [moment for moment in found if moment is not None]
        least = min(known, default=0.0)
        if len(known) == len(found) and max(known) - least <= DAY / 2 and (self._last or 0.0) - self._days - least <= DAY / 2:
            self._last = known[-1] + self._days
            return [moment + self._days for moment in known]
        return self._past_midnight(found)

    def _past_midnight(self, found: list[float | None]) -> list[float | None]:
        times: list[float | None] = []
        for moment in found:
            if moment is not None:
                moment += self._days
                if self._last is not None and self._last - moment > DAY / 2:
                    self._days += DAY
                    moment += DAY
                self._last = moment
            times.append(moment)
        return times
