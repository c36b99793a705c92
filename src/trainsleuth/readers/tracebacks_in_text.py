"""Finds tracebacks and stacks between the lines of a log, without slowing down where there are none."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trainsleuth.readers.kinds import Fact
from trainsleuth.readers.line_layout import LONGEST_LINE
from trainsleuth.readers.text_search import holds, spans_with
from trainsleuth.readers.tracebacks import Tracebacks

HINTS = (b"Traceback (", b"Watchdog caught", b"Assertion ", b"what():", b"bus error", b"Fatal Python", b"oom", b"Out of memory: ",
         b"Segmentation fault", b"Bus error", b"Killed", b"Aborted", b"Illegal instruction", b"Thread ", b"Current thread x", b"# ",
         b"Process ")  # fmt: skip
_HINT = re.compile(b"|".join(re.escape(hint) for hint in HINTS))
_HEADLESS = re.compile(rb"^\s*((?:\w+\.)*\w*(?:Error|Exception)): \S")

# Of the lines with a hint, `Tracebacks` can begin something with those that hold one of these words (the last is a shell's: what
# happened at which line of its script; an escape is the rest of a colour, which may stand between words),
_ANYWHERE = (b"Traceback (", b"Watchdog caught", b": block: [", b"Unexpected bus error", b"Fatal Python error", b"kill event",
             b"Out of memory: Killed", b"Error: ", b"Exception: ", b"\x1b", b": line ")  # fmt: skip
# and with those that begin with one of these, after nothing but a rank or an actor.
_AT_START = (b"Process ", b"Thread ", b"Current thread x", b"what():", b"Segmentation fault", b"Bus error", b"Killed", b"Aborted",
             b"Illegal instruction", b"# ")  # fmt: skip
_STARTS = re.compile(rb"(?:\[[^\]]*\]|\([^()]*\))?(?:\W*\b(?:" + b"|".join(map(re.escape, _AT_START[:-1])) + rb")|\W*# )")


class TracebackCollector:
    """Passes on to `Tracebacks` what could be one."""

    def __init__(self) -> None:
        self._found = Tracebacks()
        self._headless: dict[bytes, Fact] = {}
        self._told: set[str] = set()

    @staticmethod
    def among(shapes: list[bytes]) -> set[bytes]:
        """Those whose lines could begin a traceback or stack, or name an exception."""
        text = b"\n".join(shapes)
        found = {text[start:end] for words in _ANYWHERE for start, end in spans_with(words, text)}
        if any(holds(words, text) for words in _AT_START):
            found.update(filter(_STARTS.match, shapes))
        return {shape for shape in found if len(shape) < LONGEST_LINE and (_HINT.search(shape) or _HEADLESS.match(shape))}

    def look(self, hinted: Sequence[int], lines: Sequence[bytes], numbers: Sequence[int]) -> list[Fact]:
        """`hinted` are the places of lines of such a shape, in order."""
        facts: list[Fact] = []
        begins = 0 if self._found.busy else None
        hints = iter(hinted)
        at = begins if begins is not None else next(hints, None)
        done = -1
        while at is not None and at < len(lines):
            self._look_at_end(lines[at], numbers[at])
            facts += self._found.line(lines[at][:4000].decode("utf-8", "replace"), numbers[at])
            done = at
            at = at + 1 if self._found.busy else next((hint for hint in hints if hint > done), None)
        return self._noted(facts)

    def _look_at_end(self, line: bytes, number: int) -> None:
        """`RuntimeError: …` with no traceback above it: people quote only the last line."""
        match = _HEADLESS.match(line)
        if match is not None and len(self._headless) < 64:
            kind = match[1].decode("utf-8", "replace").rpartition(".")[2]
            message = line[match.end() - 1 : 2000].decode("utf-8", "replace").strip()
            fact: Fact = {"k": "crash", "kind": kind, "message": message, "frames": [], "code": [], "rank": None, "at": number}
            self._headless.setdefault(line, fact)

    def _noted(self, facts: list[Fact]) -> list[Fact]:
        self._told.update(str(fact["message"]).partition("\n")[0].strip() for fact in facts if fact["k"] == "crash")
        return facts

    def finish(self) -> list[Fact]:
        facts = self._noted(list(self._found.end()))
        return facts + [fact for fact in self._headless.values() if str(fact["message"]).partition("\n")[0].strip() not in self._told]
