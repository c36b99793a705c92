"""What a reader is, and the facts it gives.

A reader is a module with

NAME         the name of the format, as the user reads it
TOGETHER     optional; True where all files of one folder are one run (TensorBoard writes several)
recognises   whether a file is of this format, by its name and its first bytes
read         its facts, one by one: flat memory, no exception for bad content, nothing unpickled, nothing run

Facts are plain dicts; "k" is their kind:

source    format, path                                    what is being read; comes first
point     name, value, step, epoch, t, at, run, prefix    one number: `value` may be nan or inf, `t` is in unix seconds, `at` is the
                                                          number of the line or record, `run` counts the runs of one file, `prefix`
                                                          is "train", "val", … where the layout says so; step, epoch, t may be None
points    the same with lists                             many of one name at once: values, steps, epochs, times, lines; see `columns`
setting   name, value                                     a dotted name and a plain value
message   text, at, count, last_text, last                a line that says something in words: how often (with other digits), its first and
                                                          its last text and line
pauses    count, first, last, usual, longest, lines       times that a log gives: how many, from when to when, and between two of them
                                                          usually and at most ([seconds, line before, line after])
crash     kind, message, frames, rank                     as the probe of that name writes it: frames are [file, line, function]
stack     process, threads                                threads are {"name", "frames"}
flight    rank, number, name, group, sizes, frames,       one collective that a rank entered: its number in its group, whether it was done, and
          state, done, pair                               the lines below it, innermost first; `pair` is a send or a receive
writer    folder, …                                       as the probe of that name writes it
dropped   name, step, why, at                             a point that a logger is known to have lost
skipped   what, count, at                                 what was not understood
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

Fact = dict[str, Any]


class Reader(Protocol):
    """The shape of a reader's module."""

    NAME: str

    def recognises(self, path: Path, head: bytes) -> bool: ...

    def read(self, path: Path) -> Iterator[Fact]: ...


def point(
    name: str, value: float, *, step: int | None = None, epoch: float | None = None, t: float | None = None, at: int = 0,
    run: int = 0, prefix: str = "",
) -> Fact:  # fmt: skip
    return {"k": "point", "name": name, "value": value, "step": step, "epoch": epoch, "t": t, "at": at, "run": run, "prefix": prefix}


def columns(
    name: str, values: list[float], lines: list[int], *, steps: list[int] | None = None, epochs: list[float] | None = None,
    times: list[float] | None = None, run: int = 0, prefix: str = "", digits: int | None = None, rising: bool = False,
) -> Fact:  # fmt: skip
    """Many values of one name; the lists are of one length or None. `digits` is how many decimals were printed, `rising` says that
    the steps are known never to go back."""
    return {
        "k": "points", "name": name, "values": values, "lines": lines, "steps": steps, "epochs": epochs, "times": times, "run": run,
        "prefix": prefix, "digits": digits, "rising": rising,
    }  # fmt: skip


def skipped(what: str, count: int, at: int) -> Fact:
    return {"k": "skipped", "what": what, "count": count, "at": at}
