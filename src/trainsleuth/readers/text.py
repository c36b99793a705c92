"""Text logs in any layout, at the speed of a disk.

Lines that differ only in their digits have one shape. A shape is understood once, from its first line, and becomes a plan that takes
the numbers of all its lines out of a whole block at a time: the block is stripped of everything but digits and split. So the slow part,
understanding, is done once for each shape, and the fast part is left to the functions of `bytes`.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from heapq import nlargest
from operator import le, lt, sub
from pathlib import Path
from typing import TypeVar

from trainsleuth.readers.kinds import Fact, columns, skipped
from trainsleuth.readers.line_layout import LONGEST_LINE, Layout, Number, axis_of, layout_of
from trainsleuth.readers.stamps import Clock
from trainsleuth.readers.table_rows import header_of, row_of
from trainsleuth.readers.tracebacks_in_text import TracebackCollector

NAME = "text log"
T = TypeVar("T")
BLOCK = 1 << 20
LONGEST_CARRY = 1 << 20
MOST_PLANS = 20_000
NEW_SHAPES_AT_FIRST = 5_000  # in the first block; later blocks may bring fewer, so that a file of nothing but new shapes stays fast
NEW_SHAPES = 500
FIRST_BLOCKS = 8
NEW_SHAPES_LATER = 60
SLOW_LINES = 2_000  # of one shape and block, when its plan does not fit
MOST_MESSAGES = 3_000
MOST_SETTINGS = 2_000
MOST_PAIRWISE = 16
LARGEST_COUNT = 10**12  # of steps or epochs
MOST_PAUSES = 4  # told of each block
MOST_CONTEXT_WORDS = 4
HEADER_REACH = 4  # lines between the head of a table and its first row

_DIGITS = b"0123456789"
_ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_DRAWN = re.compile(rb"\|[^|\n%]*\| |\[=[=>.]*\]")  # the part of a progress bar that grows
_BACKSPACES = re.compile(rb"\x08+")
_TABLES = tuple(
    bytes(byte if byte in kept else 32 for byte in range(256)) for kept in (b"0123456789.", b"0123456789.-", b"0123456789.eE+-")
)
_WORTH_KEEPING = re.compile(
    rb"(?i)warn|error|fail|fall.?back|cache|missing|not found|no such|empty|nan\b|\binf\b|skip|overflow|must be|increasing|retry|"
    rb"killed|\d-?bit|fp16|fp32|bf16|float16|float32|out of memory|oom\b|\b0 \w|: ?0\b|sample|item|file|image|dataset|"
    rb"loaded|found|precision|amp\b|resum|restor|"
    + "警告|キャッシュ|缓存|캐시|サンプル|样本|샘플|エラー|错误|에러|データ|数据|데이터".encode()
)
_WORD_SETTING = re.compile(rb"^[\s\-]*[\"']?([A-Za-z_][\w.\-]{0,60})[\"']?\s*[:=]\s*[\"']?([A-Za-z][\w.+\-]{0,40})[\"']?,?(?:\s+#.*)?\s*$")


def recognises(path: Path, head: bytes) -> bool:
    """Text: no zero bytes, hardly any control characters (UTF-16 with its mark is text too)."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return True
    sample = head[:8192]
    strange = sum(sample.count(bytes([byte])) for byte in range(32) if byte not in (7, 8, 9, 10, 12, 13, 27))
    return strange <= len(sample) // 200


def read(path: Path) -> Iterator[Fact]:
    yield {"k": "source", "format": NAME, "path": str(path)}
    log = TextLog()
    try:
        with path.open("rb") as file:
            for block in decoded(iter(lambda: file.read(BLOCK), b"")):
                yield from log.feed(block)
    except OSError as problem:
        yield skipped(f"the rest of the file: {problem.strerror}", 1, log.line)
    yield from log.finish()


def without_colours(text: bytes) -> bytes:
    return _ANSI.sub(b"", text) if b"\x1b" in text else text


def decoded(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """UTF-16 as UTF-8; everything else as it is."""
    decoder: codecs.IncrementalDecoder | None = None
    for index, block in enumerate(blocks):
        if index == 0 and block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            decoder = codecs.getincrementaldecoder("utf-16")("replace")
        if index == 0 and block.startswith(codecs.BOM_UTF8):
            block = block[3:]
        yield decoder.decode(block).encode("utf-8", "replace") if decoder is not None else block


@dataclass
class Course:
    """Where the lines with the same names have come to, to tell a new run from a step back."""

    first: float | None = None
    last: float | None = None
    line: int = 0
    laps: int = 0  # bars that began anew where nothing counts epochs
    lap_step: int | None = None


@dataclass
class Plan:
    """How the numbers of one shape are taken out."""

    layout: Layout
    table: bytes
    tokens: int
    values: list[tuple[str, int, float | None]]  # name, index of its token, the value if it is a word
    epoch: int | None
    step: int | None
    total: int | None
    names: list[int]  # tokens that are digits of names
    own_names: tuple[bytes, ...]
    course: Course
    row: bool = False
    settings: bool = False

    @property
    def context(self) -> bool:
        return not self.values and self.layout.has_axis and self.layout.words <= MOST_CONTEXT_WORDS


@dataclass
class Taken:
    """The numbers of all lines of one shape in one block."""

    plan: Plan
    lines: list[int]  # the orders of its pieces, until facts are made
    values: list[tuple[str, list[float], int | None]]  # name, values, printed decimals
    epochs: list[float] | None
    steps: list[int] | None
    totals: list[int] | None
    times: list[float] | None

    def part(self, start: int, end: int) -> Taken:
        def cut(column: list[float] | None) -> list[float] | None:
            return None if column is None else column[start:end]

        values = [(name, column[start:end], digits) for name, column, digits in self.values]
        return Taken(self.plan, self.lines[start:end], values, cut(self.epochs), cut(self.steps), cut(self.totals), cut(self.times))  # type: ignore[arg-type]


@dataclass
class Message:
    text: str
    at: int
    count: int = 0
    last_text: str = ""
    last: int = 0


class TextLog:
    """Reads a log block by block; `feed` and `finish` give facts."""

    def __init__(self) -> None:
        self.line = 1
        self._order = 1  # of the next piece of text; more than its line where bars were overwritten
        self._plain = True  # so far each line is one piece
        self._numbers: list[int] = []  # of the block at hand: the lines of its pieces
        self._orders: list[int] = []
        self._carry = b""
        self._plans: dict[bytes | tuple[bytes, tuple[bytes, ...]], Plan | None] = {}
        self._courses: dict[tuple[str, ...], Course] = {}
        self._clock = Clock()
        self._boundaries: list[int] = []  # the lines at which a new run begins
        self._context: tuple[float | None, int | None] = (None, None)
        self._epoch_base: float | None = None
        self._messages: dict[bytes, Message] = {}
        self._settings: set[str] = set()
        self._headers: list[tuple[int, list[str]]] = []
        self._skipped: dict[str, tuple[int, int]] = {}
        self._allowance = NEW_SHAPES_AT_FIRST
        self._blocks = 0
        self._tracebacks = TracebackCollector()
        self._shown: dict[tuple[str, str], tuple[float, int]] = {}  # the last value that a bar showed, and its lap
        self._alarming: set[bytes] = set()  # shapes that could be part of a traceback

    def feed(self, data: bytes) -> list[Fact]:
        data = self._carry + data
        cut = max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1
        if cut == 0 and len(data) > LONGEST_CARRY:
            self._skip("a line longer than a megabyte", self.line)
            cut = len(data)
        self._carry = data[cut:]
        return self._block(data[:cut]) if cut else []

    def finish(self) -> list[Fact]:
        facts = self._block(self._carry) if self._carry else []
        self._carry = b""
        facts += self._tracebacks.finish()
        facts += [skipped(what, count, at) for what, (count, at) in self._skipped.items()]
        return facts

    # -- one block --------------------------------------------------------------------------------------------------

    def _block(self, block: bytes) -> list[Fact]:
        lines, numbers, block = self._lines(block)
        self._numbers = numbers
        self._plain = self._plain and b"\r" not in block and self._order == numbers[0]
        self._orders = numbers if self._plain else list(range(self._order, self._order + len(lines)))
        self._order += len(lines)
        block = block.replace(b"\r", b"\n")
        drawn = _DRAWN.sub(b"||", block) if b"%|" in block or b"[=" in block else block
        groups = _grouped(drawn.translate(None, _DIGITS).split(b"\n"))
        facts = self._tracebacks.look(self._hinted(groups), lines, numbers)
        taken: list[Taken] = []
        for key in [key for key in groups if key in self._plans] + _most_frequent_first(groups, self._plans):
            facts += self._group(key, groups[key], lines, numbers, taken)
        facts += self._placed(taken)
        facts += self._news_of_messages()
        self._blocks += 1
        self._allowance = NEW_SHAPES if self._blocks < FIRST_BLOCKS else NEW_SHAPES_LATER
        if len(self._plans) > MOST_PLANS:
            self._plans = {key: plan for key, plan in self._plans.items() if plan is not None and plan.values}
            if len(self._plans) > MOST_PLANS // 2:
                self._plans.clear()
            self._alarming.clear()
        return facts

    def _hinted(self, groups: dict[bytes, list[int]]) -> list[int]:
        """The lines whose shape could be part of a traceback; a shape is asked once."""
        new = [key for key in groups if key not in self._plans and len(key) < LONGEST_LINE]
        if TracebackCollector.may_be_among(b"\n".join(new)):
            self._alarming.update(key for key in new if TracebackCollector.may_be(key))
        return sorted(index for key in self._alarming & groups.keys() for index in groups[key]) if self._alarming else []

    def _lines(self, block: bytes) -> tuple[list[bytes], list[int], bytes]:
        """The lines of a block, their numbers, and the block made of them; what a carriage return overwrites is a line of its own."""
        block = without_colours(block)
        if b"\x08" in block:
            block = _BACKSPACES.sub(b"\r", block)
        if b"\0" in block:
            block = block.replace(b"\0", b"")
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        first = self.line
        self.line += block.count(b"\n")
        if block.endswith(b"\n"):
            block = block[:-1]
        lines = block.split(b"\n")
        if b"\r" not in block:
            return lines, list(range(first, first + len(lines))), block
        pieces: list[bytes] = []
        numbers: list[int] = []
        for number, line in enumerate(lines, first):
            parts = line.split(b"\r") if b"\r" in line else [line]
            pieces += parts
            numbers += [number] * len(parts)
        return pieces, numbers, block

    def _group(self, key: bytes, group: list[int], lines: list[bytes], numbers: list[int], taken: list[Taken]) -> list[Fact]:
        """Take the numbers of all lines of one shape, learning the shape if it is new."""
        first = lines[group[0]]
        facts: list[Fact] = []
        if key not in self._plans:
            if self._allowance <= 0:
                self._skip("lines of ever new shapes", numbers[group[0]], len(group))
                return facts
            self._allowance -= 1
            if len(key) == len(first):
                self._without_digits(key, group, lines, numbers, facts)
                self._plans[key] = None
                return facts
            self._plans[key] = self._learn(first, group, lines, numbers, facts)
        plan = self._plans[key]
        if plan is None:
            if len(key) == len(first):
                self._without_digits(key, group, lines, numbers, facts)
            else:
                self._note(key, group, lines, numbers)
            return facts
        if not plan.layout.has_axis or not plan.values:
            self._note(key, group, lines, numbers)
        self._take(key, plan, group, lines, numbers, taken)
        return facts

    def _learn(
        self, first: bytes, group: list[int], lines: list[bytes], numbers: list[int], facts: list[Fact]
    ) -> Plan | None:
        if first.lstrip().startswith(b'File "'):
            return None
        layout = layout_of(first)
        at = group[0]
        row = False
        cells = row_of(first) if not layout.joined and len(layout.values) <= 1 + layout.bar and not layout.prefix else None
        if cells is not None:
            self._name_the_row(cells, layout, at, lines, [lines[i] for i in group[:64]])
            row = True
        if layout.nulls:
            facts += [
                {"k": "dropped", "name": name, "step": None, "why": "written as null, which hides NaN", "at": numbers[index]}
                for index in group[:8] for name in layout.nulls
            ]  # fmt: skip
        if not layout.values and not layout.has_axis:
            return None
        if not layout.has_axis and layout.joined:
            self._set(layout, first, facts)
        return self._plan(first, layout, row)

    def _name_the_row(self, cells: list[tuple[int, int] | None], layout: Layout, at: int, lines: list[bytes], like: list[bytes]) -> None:
        """The numbers of a table's row get the names of its head; without a head, a column that counts is the step."""
        names = None
        for above in range(at - 1, max(-1, at - 1 - HEADER_REACH), -1):
            found = header_of(lines[above])
            if found is not None and len(found) == len(cells):
                names = found
                break
        kept = [value for value in layout.values if "/" in value.name]  # the speed of a bar
        layout.values = kept
        if names is None:
            if any(cell is None for cell in cells):
                return
            names = [f"column {index}" for index in range(1, len(cells) + 1)]
            first = cells[0]
            if first is not None and not layout.has_axis and _counts(like):
                layout.step = Number("step", *first)
                cells = [None, *cells[1:]]
        for name, cell in zip(names, cells):
            if cell is None:
                continue
            axis = axis_of(name)
            if axis == "epoch" and layout.epoch is None:
                layout.epoch = Number(name, *cell)
            elif axis == "step" and layout.step is None:
                layout.step = Number(name, *cell)
            else:
                layout.values.append(Number(name, *cell))

    def _plan(self, line: bytes, layout: Layout, row: bool) -> Plan | None:
        """Find for each number of the layout its place among the tokens of the line."""
        wanted = [value for value in layout.values if value.constant is None]
        axis = [number for number in (layout.epoch, layout.step, layout.total) if number is not None]
        for table in _TABLES:
            spans = [match.span() for match in re.finditer(rb"\S+", line.translate(table))]
            place = {span: index for index, span in enumerate(spans)}
            if all((number.start, number.end) in place for number in [*wanted, *axis]):
                break
        else:
            return self._irregular(line, layout, row)
        inside = [
            index for index, (start, end) in enumerate(spans)
            if any(a <= start and end <= b for a, b in layout.digits_in_names)
        ]  # fmt: skip
        names = tuple(value.name for value in layout.values)
        course = self._courses.setdefault((layout.prefix, str(layout.bar), *names), Course())

        def index_of(number: Number | None) -> int | None:
            return None if number is None else place[(number.start, number.end)]

        return Plan(
            layout, table, len(spans), [(v.name, -1 if v.constant is not None else place[(v.start, v.end)], v.constant) for v in layout.values],
            index_of(layout.epoch), index_of(layout.step), index_of(layout.total), inside,
            tuple(line[spans[i][0] : spans[i][1]] for i in inside), course, row,
        )  # fmt: skip

    def _irregular(self, line: bytes, layout: Layout, row: bool) -> Plan | None:
        """A line in which numbers touch other signs (`3-0.5`): what cannot be taken out at speed is left out."""
        places = [{match.span() for match in re.finditer(rb"\S+", line.translate(table))} for table in _TABLES]
        best = max(places, key=lambda place: sum((value.start, value.end) in place for value in layout.values))

        def fits(number: Number | None) -> bool:
            return number is not None and (number.constant is not None or (number.start, number.end) in best)

        fewer = [value for value in layout.values if fits(value)]
        if len(fewer) == len(layout.values) and not layout.has_axis:
            return None
        layout.values = fewer
        layout.epoch, layout.step = (number if fits(number) else None for number in (layout.epoch, layout.step))
        layout.total = layout.total if fits(layout.total) and layout.step is not None else None
        if not layout.values and not layout.has_axis:
            return None
        wanted = [value for value in layout.values if value.constant is None]
        axis = [number for number in (layout.epoch, layout.step, layout.total) if number is not None]
        if not all((number.start, number.end) in best for number in [*wanted, *axis]):
            return None
        return self._plan(line, layout, row)

    # -- taking numbers out -------------------------------------------------------------------------------------------

    def _take(
        self, key: bytes, plan: Plan, group: list[int], lines: list[bytes], numbers: list[int], taken: list[Taken]
    ) -> None:
        chosen = [lines[index] for index in group]
        tokens = b"\n".join(chosen).translate(plan.table).split()
        if len(tokens) != plan.tokens * len(group):
            self._one_by_one(group, lines, numbers, taken)
            return
        if plan.names and not self._same_names(plan, tokens):
            self._by_names(key, plan, group, tokens, lines, numbers, taken)
            return
        try:
            taken.append(self._columns(plan, tokens, chosen, [self._orders[index] for index in group]))
        except ValueError:
            self._one_by_one(group, lines, numbers, taken)

    def _columns(self, plan: Plan, tokens: list[bytes], chosen: list[bytes], at: list[int]) -> Taken:
        width = plan.tokens
        values: list[tuple[str, list[float], int | None]] = []
        for name, index, constant in plan.values:
            if constant is not None:
                values.append((name, [constant] * len(at), None))
            else:
                column = tokens[index::width]
                values.append((name, list(map(float, column)), max(_decimals(column[0]), _decimals(column[-1]))))
        epochs = None if plan.epoch is None else list(map(float, tokens[plan.epoch :: width]))
        steps = None if plan.step is None else _integers(tokens[plan.step :: width])
        totals = None if plan.total is None else _mostly_one(tokens[plan.total :: width])
        for counts in (epochs, steps, totals):
            if counts and not -1 <= min(counts) <= max(counts) <= LARGEST_COUNT:
                raise ValueError("no run is that long")
        return Taken(plan, at, values, epochs, steps, totals, self._times(plan, chosen))

    def _times(self, plan: Plan, chosen: list[bytes]) -> list[float] | None:
        stamp = plan.layout.stamp
        if stamp is None:
            return None
        times = self._clock.read(stamp, chosen)
        if None in times:
            known = next((time for time in times if time is not None), None)
            if known is None:
                return None
            filled: list[float] = []
            for time in times:
                known = time if time is not None else known
                filled.append(known)
            return filled
        return times  # type: ignore[return-value]

    def _same_names(self, plan: Plan, tokens: list[bytes]) -> bool:
        count = len(tokens) // plan.tokens
        return all(tokens[index :: plan.tokens].count(own) == count for index, own in zip(plan.names, plan.own_names))

    def _by_names(
        self, key: bytes, plan: Plan, group: list[int], tokens: list[bytes], lines: list[bytes], numbers: list[int],
        taken: list[Taken],
    ) -> None:  # fmt: skip
        """Names that differ in a digit (`Acc@1`, `Acc@5`) have one shape and are several."""
        parts: defaultdict[tuple[bytes, ...], list[int]] = defaultdict(list)
        for number, index in enumerate(group):
            row = number * plan.tokens
            parts[tuple(tokens[row + i] for i in plan.names)].append(index)
        for own, part in parts.items():
            if (key, own) not in self._plans:
                if len(self._plans) > MOST_PLANS:
                    self._skip("names with ever new digits", numbers[part[0]], len(part))
                    continue
                layout = layout_of(lines[part[0]])
                self._plans[(key, own)] = self._plan(lines[part[0]], layout, False)
            known = self._plans[(key, own)]
            if known is None or not known.values:
                continue
            chosen = [lines[index] for index in part]
            tokens_of = b"\n".join(chosen).translate(known.table).split()
            try:
                if len(tokens_of) == known.tokens * len(part):
                    taken.append(self._columns(known, tokens_of, chosen, [self._orders[index] for index in part]))
            except ValueError:
                self._one_by_one(part, lines, numbers, taken)

    def _one_by_one(self, group: list[int], lines: list[bytes], numbers: list[int], taken: list[Taken]) -> None:
        """Lines of one shape whose numbers stand elsewhere: each is understood by itself."""
        for index in group[:SLOW_LINES]:
            line = lines[index][:LONGEST_LINE]
            layout = layout_of(line)
            plan = self._plan(line, layout, False) if layout.values or layout.has_axis else None
            if plan is None:
                continue
            tokens = line.translate(plan.table).split()
            try:
                taken.append(self._columns(plan, tokens, [line], [self._orders[index]]))
            except (ValueError, IndexError):
                self._skip("lines whose numbers cannot be told apart", numbers[index])
        if len(group) > SLOW_LINES:
            self._skip("lines of an unsteady shape", numbers[group[SLOW_LINES]], len(group) - SLOW_LINES)

    # -- where in the run a line stands ---------------------------------------------------------------------------------

    def _placed(self, taken: list[Taken]) -> list[Fact]:
        """Give all lines their step, epoch and run, then make facts of them."""
        without = [part for part in taken if part.epochs is None]
        for part in taken:
            self._global_steps(part)
        if needing := [part for part in without if part.steps is None or part.totals is not None]:
            self._from_context(needing, taken)
        for part in without:
            self._global_steps(part)
        for course, parts in _by_course(taken):
            self._laps(course, [part for part in parts if part.epochs is None and part.steps is not None and part.totals is not None])
            self._find_runs(course, parts)
        self._remember_context(taken)
        facts: list[Fact] = []
        for part in taken:
            if part.plan.values:
                for run, piece in self._by_run(part):
                    facts += self._facts(run, piece)
        placed = [*map(self._without_repeats, _in_order(facts)), *_pauses(taken)]
        for fact in placed if not self._plain else ():
            fact["lines"] = [self._line_of(order) for order in fact["lines"]]
            for pause in fact.get("longest", ()):
                pause[1:] = [self._line_of(order) for order in pause[1:]]
        return placed

    def _line_of(self, order: int) -> int:
        return self._numbers[order - self._orders[0]]

    def _global_steps(self, part: Taken) -> None:
        """A batch of an epoch becomes a step of the run where the length of an epoch is known."""
        if part.epochs is None or part.steps is None or part.totals is None:
            return
        if self._epoch_base is None:
            self._epoch_base = 0.0 if part.epochs[0] < 1 else 1.0
        base = self._epoch_base
        length = part.totals[0]
        if part.totals.count(length) == len(part.totals):
            starts = {epoch: int(max(0.0, epoch - base)) * length for epoch in dict.fromkeys(part.epochs)}
            part.steps = [starts[epoch] + step for epoch, step in zip(part.epochs, part.steps)]
        else:
            places = zip(part.epochs, part.steps, part.totals)
            part.steps = [int(max(0.0, epoch - base)) * total + step for epoch, step, total in places]
        part.totals = None

    def _laps(self, course: Course, parts: list[Taken]) -> None:
        """A bar that begins anew where nobody counts epochs has begun the next one."""
        for part in parts:
            part.epochs = [0.0] * len(part.lines)
        for part, row in _in_line_order(parts):
            steps, totals, epochs = part.steps or [], part.totals or [], part.epochs or []
            step = steps[row]
            if course.lap_step is not None and step < course.lap_step:
                course.laps += 1
            course.lap_step = step
            epochs[row] = float(course.laps)
            steps[row] = course.laps * totals[row] + step
        for part in parts:
            part.totals = None

    def _from_context(self, needing: list[Taken], taken: list[Taken]) -> None:
        """Lines that do not say where they stand stand where the last line that said so stood."""
        sources = [
            part for part in taken
            if (part.plan.values or part.plan.context) and (part.epochs is not None or (part.steps is not None and part.totals is None))
        ]  # fmt: skip
        with_epoch = [(part.lines, part.epochs) for part in sources if part.epochs is not None]
        with_step = [(part.lines, part.steps) for part in sources if part.steps is not None and part.totals is None]
        epoch, step = self._context
        for part in needing:
            if with_epoch or epoch is not None:
                found = _latest(with_epoch, part.lines, epoch)
                part.epochs = found if None not in found else None  # type: ignore[assignment]
            if part.steps is None and (with_step or step is not None):
                counted = _latest(with_step, part.lines, step)
                part.steps = counted if None not in counted else None  # type: ignore[assignment]

    def _remember_context(self, taken: list[Taken]) -> None:
        epoch, step = self._context
        latest_epoch = latest_step = -1
        for part in taken:
            if not part.plan.values and not part.plan.context:
                continue
            if part.epochs is not None and part.plan.epoch is not None and part.lines[-1] > latest_epoch:
                latest_epoch, epoch = part.lines[-1], part.epochs[-1]
            if part.steps is not None and part.plan.step is not None and part.totals is None and part.lines[-1] > latest_step:
                latest_step, step = part.lines[-1], part.steps[-1]
        self._context = (epoch, step)

    def _find_runs(self, course: Course, parts: list[Taken]) -> None:
        """A course that falls back to where it began has begun again."""
        placed = [(part, positions) for part in parts if (positions := _positions(part)) is not None]
        if not placed:
            return
        if len(placed) == 1:
            part, positions = placed[0]
            if (course.last is None or course.last <= positions[0]) and all(map(le, positions, positions[1:])):
                course.first = positions[0] if course.first is None else course.first
                course.last, course.line = positions[-1], part.lines[-1]
                return
        places = sorted(((line, at) for part, positions in placed for line, at in zip(part.lines, positions)), key=lambda place: place[0])
        for line, at in places:
            if course.first is None:
                course.first = at
            elif course.last is not None and at < course.last and at <= course.first:
                self._begin_run(course.line, line)
                course.first = at
            course.last, course.line = at, line

    def _begin_run(self, after: int, line: int) -> None:
        index = bisect_right(self._boundaries, after)
        if index < len(self._boundaries) and self._boundaries[index] <= line:
            return  # another shape has told us already
        self._boundaries.insert(bisect_left(self._boundaries, line), line)

    def _by_run(self, part: Taken) -> Iterator[tuple[int, Taken]]:
        first, last = bisect_right(self._boundaries, part.lines[0]), bisect_right(self._boundaries, part.lines[-1])
        if first == last:
            yield first, part
            return
        start = 0
        for run in range(first, last + 1):
            end = bisect_left(part.lines, self._boundaries[run]) if run < last else len(part.lines)
            if end > start:
                yield run, part.part(start, end)
            start = end

    def _facts(self, run: int, part: Taken) -> list[Fact]:
        prefix = part.plan.layout.prefix
        rising = part.steps is not None and all(map(le, part.steps, part.steps[1:]))
        facts = []
        for name, values, digits in part.values:
            fact = columns(
                name, values, part.lines, steps=part.steps, epochs=part.epochs, times=part.times, run=run, prefix=prefix, digits=digits,
                rising=rising,
            )  # fmt: skip
            fact["bar"] = part.plan.layout.bar and "/" not in name
            facts.append(fact)
        return facts

    def _without_repeats(self, fact: Fact) -> Fact:
        """A bar repeats what it knows: a value counts when it changes, and once for each bar."""
        if not fact.pop("bar"):
            return fact
        known = (fact["prefix"], fact["name"])
        last, kept = self._shown.get(known), []
        epochs = fact["epochs"]
        for index, value in enumerate(fact["values"]):
            now = (value, int(epochs[index]) if epochs is not None else 0)
            if now != last:
                kept.append(index)
            last = now
        if last is not None:
            self._shown[known] = last
        for column in ("values", "lines", "steps", "epochs", "times"):
            fact[column] = _picked(fact[column], kept)
        return fact

    # -- words ------------------------------------------------------------------------------------------------------------

    def _without_digits(
        self, key: bytes, group: list[int], lines: list[bytes], numbers: list[int], facts: list[Fact]
    ) -> None:
        if key not in self._plans:
            match = _WORD_SETTING.match(key) if len(key) < 120 else None
            if match is not None:
                self._add_setting(match[1].decode(), match[2].decode(), facts)
            if b"nan" in key or b"NaN" in key or b"null" in key:
                layout = layout_of(key)
                if any(value.constant is not None for value in layout.values):
                    plan = self._plan(key, layout, False)
                    if plan is not None:
                        at = [self._orders[index] for index in group]
                        taken = self._columns(plan, [], [lines[index] for index in group], at)
                        facts += self._placed([taken])
        self._note(key, group, lines, numbers)

    def _note(self, key: bytes, group: list[int], lines: list[bytes], numbers: list[int]) -> None:
        known = self._messages.get(key)
        if known is None:
            first = lines[group[0]][:LONGEST_LINE]
            if len(self._messages) >= MOST_MESSAGES or not _WORTH_KEEPING.search(first):
                return
            known = self._messages[key] = Message(_text(first), numbers[group[0]])
        known.count += len(group)
        known.last_text, known.last = _text(lines[group[-1]]), numbers[group[-1]]

    def _news_of_messages(self) -> list[Fact]:
        facts: list[Fact] = []
        for message in self._messages.values():
            if message.count:
                facts.append({"k": "message", "text": message.text, "at": message.at, "count": message.count,
                              "last_text": message.last_text, "last": message.last})  # fmt: skip
                message.count = 0
        return facts

    def _set(self, layout: Layout, line: bytes, facts: list[Fact]) -> None:
        for value in layout.values:
            if value.constant is None:
                number = float(line[value.start : value.end].replace(b",", b""))
                self._add_setting(value.name, int(number) if number.is_integer() and abs(number) < 1e15 else number, facts)

    def _add_setting(self, name: str, value: object, facts: list[Fact]) -> None:
        if name not in self._settings and len(self._settings) < MOST_SETTINGS:
            self._settings.add(name)
            facts.append({"k": "setting", "name": name, "value": value})

    def _skip(self, what: str, at: int, count: int = 1) -> None:
        before, first = self._skipped.get(what, (0, at))
        self._skipped[what] = (before + count, first)


def _by_course(taken: list[Taken]) -> list[tuple[Course, list[Taken]]]:
    """The parts whose lines have the same names, of whatever shape."""
    found: dict[int, tuple[Course, list[Taken]]] = {}
    for part in taken:
        found.setdefault(id(part.plan.course), (part.plan.course, []))[1].append(part)
    return list(found.values())


def _in_line_order(parts: list[Taken]) -> list[tuple[Taken, int]]:
    rows = [(part.lines[row], index, row) for index, part in enumerate(parts) for row in range(len(part.lines))]
    if len(parts) > 1:
        rows.sort()
    return [(parts[index], row) for _, index, row in rows]


def _positions(part: Taken) -> list[float] | list[int] | None:
    """How far the run is at each line, by what the lines themselves say; None where they say nothing that tells a new run."""
    plan = part.plan
    if (plan.epoch is None and plan.step is None) or not (plan.values or plan.context):
        return None
    if plan.epoch is not None and part.epochs is not None and (part.steps is None or plan.step is None or plan.total is None):
        return part.epochs
    if plan.total is not None and plan.epoch is None:
        return None  # a bar, which begins anew with each epoch
    return part.steps


def _in_order(facts: list[Fact]) -> Iterator[Fact]:
    """One fact for each name: shapes that share a name (another sign, an exponent) are laid together by their lines."""
    same: defaultdict[tuple[int, str, str], list[Fact]] = defaultdict(list)
    for fact in facts:
        same[(fact["run"], fact["prefix"], fact["name"])].append(fact)
    for parts in same.values():
        if len(parts) == 1:
            yield parts[0]
            continue
        lines = [line for part in parts for line in part["lines"]]
        order = sorted(range(len(lines)), key=lines.__getitem__)
        joined = {**parts[0], "lines": [lines[index] for index in order]}
        for column in ("values", "steps", "epochs", "times"):
            whole = all(part[column] is not None for part in parts)
            flat = [item for part in parts for item in part[column]] if whole else None
            joined[column] = None if flat is None else [flat[index] for index in order]
        joined["rising"] = False
        joined["bar"] = any(part["bar"] for part in parts)
        joined["digits"] = max((part["digits"] for part in parts if part["digits"] is not None), default=None)
        yield joined


def _pauses(taken: list[Taken]) -> list[Fact]:
    """The longest times between two lines that say when they were written, and the usual one."""
    timed = [part for part in taken if part.times is not None]
    if not timed:
        return []
    times: list[float] = [time for part in timed for time in part.times or ()]
    lines = [line for part in timed for line in part.lines]
    if len(timed) > 1:
        order = sorted(range(len(lines)), key=lines.__getitem__)
        times, lines = [times[index] for index in order], [lines[index] for index in order]
    gaps = list(map(sub, times[1:], times))
    few = sorted(gaps[:: 1 + len(gaps) // 512])
    above = 4 * few[len(few) // 2] if few else 0.0
    longest = nlargest(MOST_PAUSES, [at for at, gap in enumerate(gaps) if gap > above], key=gaps.__getitem__)
    return [{
        "k": "pauses", "count": len(times), "first": times[0], "last": times[-1], "lines": [lines[0], lines[-1]],
        "usual": few[len(few) // 2] if few else 0.0, "longest": [[gaps[at], lines[at], lines[at + 1]] for at in longest],
    }]  # fmt: skip


def _grouped(shapes: list[bytes]) -> dict[bytes, list[int]]:
    """The places of each shape. Most lines of a log have one: it is left out of the counting."""
    usual = shapes[len(shapes) // 2]
    others = [index for index, shape in enumerate(shapes) if shape != usual]
    groups: defaultdict[bytes, list[int]] = defaultdict(list)
    if len(others) * 4 > len(shapes):
        for index, shape in enumerate(shapes):
            groups[shape].append(index)
        return groups
    start, rest = 0, groups[usual]
    for index in others:
        rest.extend(range(start, index))
        groups[shapes[index]].append(index)
        start = index + 1
    rest.extend(range(start, len(shapes)))
    return groups


def _most_frequent_first(groups: dict[bytes, list[int]], known: Container[object]) -> list[bytes]:
    """New shapes, those first that come again: they are more likely to be about the training."""
    return sorted((key for key in groups if key not in known), key=lambda key: -len(groups[key]))


def _mostly_one(tokens: list[bytes]) -> list[int]:
    """Whole numbers that hardly change from line to line."""
    first = tokens[0]
    return [int(first)] * len(tokens) if tokens.count(first) == len(tokens) else list(map(int, tokens))


def _integers(tokens: list[bytes]) -> list[int]:
    try:
        return list(map(int, tokens))
    except ValueError:
        return [int(float(token)) for token in tokens]


def _decimals(token: bytes) -> int:
    mantissa, _, exponent = token.lower().partition(b"e")
    digits = len(mantissa.partition(b".")[2])
    return digits - int(exponent) if exponent else digits


def _counts(rows: list[bytes]) -> bool:
    """Whether the first cell of these rows counts up."""
    cells = [row.split(None, 1)[0].strip(b"|,;:") for row in rows if row.strip()]
    if len(cells) < 3 or not all(cell.isdigit() and len(cell) < 16 for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    return all(map(lt, numbers, numbers[1:]))


def _latest(columns_: list[tuple[list[int], list[T]]], lines: list[int], before: T | None) -> list[T | None]:
    """For each line the item that stood last before it, in any of the columns."""
    if len(columns_) > MOST_PAIRWISE:
        pairs = sorted(((line, item) for places, items in columns_ for line, item in zip(places, items)), key=lambda pair: pair[0])
        columns_ = [([line for line, _ in pairs], [item for _, item in pairs])]
    found: list[T | None] = []
    for line in lines:
        nearest, chosen = -1, before
        for places, items in columns_:
            index = bisect_right(places, line) - 1
            if index >= 0 and places[index] > nearest:
                nearest, chosen = places[index], items[index]
        found.append(chosen)
    return found


def _picked(column: list[T] | None, kept: list[int]) -> list[T] | None:
    return None if column is None else [column[index] for index in kept]


def _text(line: bytes) -> str:
    return line[:400].decode("utf-8", "replace").strip()
