"""Text logs in any layout, at the speed of a disk.

Lines that differ only in their digits have one shape. A shape is understood once, from its first line, and becomes a plan that takes
the numbers of all its lines out of a whole block at a time: the block is stripped of everything but digits and split. So the slow part,
understanding, is done once for each shape, and the fast part is left to the functions of `bytes`.
"""

from __future__ import annotations

import codecs
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from operator import lt
from pathlib import Path

from trainsleuth.readers.kinds import Fact, skipped
from trainsleuth.readers.line_layout import LONGEST_LINE, Layout, Number, axis_of, layout_of, may_tell_numbers
from trainsleuth.readers.stamps import Clock
from trainsleuth.readers.table_rows import header_of, row_of
from trainsleuth.readers.text_columns import FEWEST_ALIKE, Columns, DigitGrids, SplitTokens, has_numpy, keeping
from trainsleuth.readers.text_messages import Messages
from trainsleuth.readers.text_placing import Pieces, Placing
from trainsleuth.readers.text_plan import Course, Plan, Taken
from trainsleuth.readers.text_shapes import Shapes, shaped
from trainsleuth.readers.tracebacks_in_text import TracebackCollector

NAME = "text log"
BLOCK = 1 << 20
LONGEST_CARRY = 1 << 20
BLOCKS_BEFORE_GRIDS = 8  # numpy takes as long to import as some megabytes take to read without it
MOST_PLANS = 20_000
NEW_SHAPES_AT_FIRST = 5_000  # in the first block; later blocks may bring fewer, so that a file of nothing but new shapes stays fast
NEW_SHAPES = 500
FIRST_BLOCKS = 8
NEW_SHAPES_LATER = 60
SLOW_LINES = 2_000  # of one shape and block, when its plan does not fit
MOST_SETTINGS = 2_000
HEADER_REACH = 4  # lines between the head of a table and its first row

_ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_BACKSPACES = re.compile(rb"\x08+")
_TABLES = tuple(map(keeping, (b"0123456789.", b"0123456789.-", b"0123456789.eE+-")))
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


class TextLog:
    """Reads a log block by block; `feed` and `finish` give facts."""

    def __init__(self) -> None:
        self.line = 1
        self._order = 1  # of the next piece of text; more than its line where bars were overwritten
        self._plain = True  # so far each line is one piece
        self._numbers: Sequence[int] = []  # of the block at hand: the lines of its pieces
        self._orders = range(0)
        self._shapes = Shapes([], {}, {})  # of the block at hand
        self._carry = b""
        self._plans: dict[bytes | tuple[bytes, tuple[bytes, ...]], Plan | None] = {}
        self._courses: dict[tuple[str, ...], Course] = {}
        self._clock = Clock()
        self._placing = Placing()
        self._messages = Messages()
        self._settings: set[str] = set()
        self._headers: list[tuple[int, list[str]]] = []
        self._skipped: dict[str, tuple[int, int]] = {}
        self._allowance = NEW_SHAPES_AT_FIRST
        self._blocks = 0
        self._tracebacks = TracebackCollector()
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
        self._orders = range(self._order, self._order + len(lines))
        self._order += len(lines)
        shapes = self._shapes = shaped(block, lines)
        known, new = shapes.known(self._plans), shapes.new(self._plans)
        alarming = TracebackCollector.among(new)
        facts = self._tracebacks.look(self._hinted(alarming), lines, numbers)
        chosen = shapes.most_frequent(self._plans, self._allowance + 1)
        left = chosen[self._allowance :]
        looked_at = [(key, shapes.places(key)) for key in [*known, *chosen[: self._allowance]]]
        taken: list[Taken] = []
        for key, group in looked_at:
            facts += self._group(key, group, lines, numbers, taken)
        if left:
            count = len(lines) - sum(len(group) for _, group in looked_at)
            self._skip("lines of ever new shapes", numbers[shapes.places(left[0])[0]], count)
        self._alarming.update(filter(self._plans.__contains__, alarming))
        facts += self._placing.place(taken, self._pieces())
        facts += self._messages.news()
        self._blocks += 1
        self._allowance = NEW_SHAPES if self._blocks < FIRST_BLOCKS else NEW_SHAPES_LATER
        if len(self._plans) > MOST_PLANS:
            self._plans = {key: plan for key, plan in self._plans.items() if plan is not None and plan.values}
            if len(self._plans) > MOST_PLANS // 2:
                self._plans.clear()
            self._alarming.clear()
        return facts

    def _pieces(self) -> Pieces | None:
        return None if self._plain else Pieces(self._orders.start, self._numbers)

    def _hinted(self, new: set[bytes]) -> list[int]:
        """The lines whose shape could be part of a traceback. Of a shape that was learnt this is known; any other is asked again."""
        shapes = self._shapes
        return sorted(place for key in self._alarming | new if key in shapes for place in shapes.places(key))

    def _lines(self, block: bytes) -> tuple[list[bytes], Sequence[int], bytes]:
        """The lines of a block, their numbers, and the block made of them; what a carriage return overwrites is a line of its own."""
        block = without_colours(block)
        if b"\x08" in block:
            block = _BACKSPACES.sub(b"\r", block)
        if b"\0" in block:
            block = block.replace(b"\0", b"")
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n")
        first = self.line
        whole = block.endswith(b"\n")
        if whole:
            block = block[:-1]
        lines = block.split(b"\n")
        self.line += len(lines) - 1 + whole
        if b"\r" not in block:
            return lines, range(first, first + len(lines)), block
        pieces: list[bytes] = []
        numbers: list[int] = []
        for number, line in enumerate(lines, first):
            parts = line.split(b"\r") if b"\r" in line else [line]
            pieces += parts
            numbers += [number] * len(parts)
        return pieces, numbers, block

    def _group(self, key: bytes, group: list[int], lines: list[bytes], numbers: Sequence[int], taken: list[Taken]) -> list[Fact]:
        """Take the numbers of all lines of one shape, learning the shape if it is new."""
        first = lines[group[0]]
        facts: list[Fact] = []
        if key not in self._plans:
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
                self._messages.note(key, group, lines, numbers)
            return facts
        if not plan.layout.has_axis or not plan.values:
            self._messages.note(key, group, lines, numbers)
        self._take(key, plan, group, lines, numbers, taken)
        return facts

    def _learn(
        self, first: bytes, group: list[int], lines: list[bytes], numbers: Sequence[int], facts: list[Fact]
    ) -> Plan | None:
        if first.lstrip().startswith(b'File "') or not may_tell_numbers(first):
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
        self, key: bytes, plan: Plan, group: list[int], lines: list[bytes], numbers: Sequence[int], taken: list[Taken]
    ) -> None:
        columns = self._laid_out(key, plan, group, lines)
        if columns is None:
            self._one_by_one(group, lines, numbers, taken)
        elif plan.names and not columns.names_are(plan.names, plan.own_names):
            self._by_names(key, plan, group, lines, numbers, taken)
        else:
            try:
                taken.append(self._columns(plan, columns, group))
            except ValueError:
                self._one_by_one(group, lines, numbers, taken)

    def _laid_out(self, key: bytes, plan: Plan, group: list[int], lines: list[bytes]) -> Columns | None:
        """In grids where that is worth it: the log is long, its lines are alike, and numpy is there."""
        if self._blocks >= BLOCKS_BEFORE_GRIDS and len(group) >= FEWEST_ALIKE:
            alike = self._shapes.alike(key)
            if len(group) >= FEWEST_ALIKE * len(alike) and has_numpy():
                return DigitGrids.of(plan, lines, alike)
        return SplitTokens.of(plan, [lines[index] for index in group])

    def _columns(self, plan: Plan, columns: Columns, group: list[int]) -> Taken:
        values: list[tuple[str, list[float], int | None]] = []
        for name, index, constant in plan.values:
            if constant is not None:
                values.append((name, [constant] * len(group), None))
            else:
                values.append((name, columns.floats(index), columns.decimals(index)))
        epochs = None if plan.epoch is None else columns.epochs(plan.epoch)
        steps = None if plan.step is None else columns.counts(plan.step)
        totals = None if plan.total is None else columns.totals(plan.total)
        return Taken(plan, self._orders_of(group), values, epochs, steps, totals, self._times(plan, columns))

    def _orders_of(self, group: list[int]) -> list[int]:
        start, first, last = self._orders.start, group[0], group[-1]
        if last - first == len(group) - 1:
            return list(range(start + first, start + last + 1))
        return [start + index for index in group]

    def _times(self, plan: Plan, columns: Columns) -> list[float] | None:
        stamp = plan.layout.stamp
        if stamp is None:
            return None
        times = self._clock.times(stamp, columns.moments(stamp))
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

    def _by_names(
        self, key: bytes, plan: Plan, group: list[int], lines: list[bytes], numbers: Sequence[int], taken: list[Taken]
    ) -> None:
        """Names that differ in a digit (`Acc@1`, `Acc@5`) have one shape and are several."""
        tokens = SplitTokens.of(plan, [lines[index] for index in group])
        if tokens is None:
            return
        parts: defaultdict[tuple[bytes, ...], list[int]] = defaultdict(list)
        for row, index in enumerate(group):
            parts[tokens.row(row, plan.names)].append(index)
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
            columns = SplitTokens.of(known, [lines[index] for index in part])
            try:
                if columns is not None:
                    taken.append(self._columns(known, columns, part))
            except ValueError:
                self._one_by_one(part, lines, numbers, taken)

    def _one_by_one(self, group: list[int], lines: list[bytes], numbers: Sequence[int], taken: list[Taken]) -> None:
        """Lines of one shape whose numbers stand elsewhere: each is understood by itself."""
        for index in group[:SLOW_LINES]:
            line = lines[index][:LONGEST_LINE]
            layout = layout_of(line)
            plan = self._plan(line, layout, False) if layout.values or layout.has_axis else None
            if plan is None:
                continue
            columns = SplitTokens.of(plan, [line])
            try:
                if columns is not None:
                    taken.append(self._columns(plan, columns, [index]))
            except ValueError:
                self._skip("lines whose numbers cannot be told apart", numbers[index])
        if len(group) > SLOW_LINES:
            self._skip("lines of an unsteady shape", numbers[group[SLOW_LINES]], len(group) - SLOW_LINES)

    # -- words ------------------------------------------------------------------------------------------------------------

    def _without_digits(
        self, key: bytes, group: list[int], lines: list[bytes], numbers: Sequence[int], facts: list[Fact]
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
                        taken = self._columns(plan, SplitTokens([], plan.tokens, [lines[index] for index in group]), group)
                        facts += self._placing.place([taken], self._pieces())
        self._messages.note(key, group, lines, numbers)

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


def _counts(rows: list[bytes]) -> bool:
    """Whether the first cell of these rows counts up."""
    cells = [row.split(None, 1)[0].strip(b"|,;:") for row in rows if row.strip()]
    if len(cells) < 3 or not all(cell.isdigit() and len(cell) < 16 for cell in cells):
        return False
    numbers = [int(cell) for cell in cells]
    return all(map(lt, numbers, numbers[1:]))
