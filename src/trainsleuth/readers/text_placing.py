"""Where in the run the lines of a text log stand: their step, epoch and run, from what they say and from what stood before them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush, nlargest
from itertools import chain, compress, islice, pairwise, repeat
from math import isnan
from operator import add, ne, or_, sub
from typing import Any, NamedTuple, TypeVar

from trainsleuth.readers.kinds import Fact, columns
from trainsleuth.readers.text_plan import Course, Taken

T = TypeVar("T")
Lay = Callable[[list[list[Any]]], list[Any]]
MOST_PAIRWISE = 16
MOST_PAUSES = 4  # told of each block
FEWEST_IN_A_STRETCH = 8  # lines of one shape that follow each other, on average, for their columns to be laid together in slices


class Pieces(NamedTuple):
    """The lines of which the pieces of a block are parts."""

    first: int  # the order of the first piece
    lines: Sequence[int]

    def lines_of(self, orders: list[int]) -> list[int]:
        return list(map(self.lines.__getitem__, map((-self.first).__add__, orders)))


class Placing:
    """What is known from the blocks before: which epoch and step were said last, and where runs begin."""

    def __init__(self) -> None:
        self._boundaries: list[int] = []  # the lines at which a new run begins
        self._context: tuple[float | None, int | None] = (None, None)
        self._epoch_base: float | None = None
        self._shown: dict[tuple[str, str], tuple[float, int]] = {}  # the last value that a bar showed, and its lap

    def place(self, taken: list[Taken], pieces: Pieces | None = None) -> list[Fact]:
        """Give all lines their step, epoch and run, then make facts of them; `pieces` where a line was written in several."""
        without = [part for part in taken if part.epochs is None]
        for part in taken:
            self._global_steps(part)
        if needing := [part for part in without if part.steps is None or part.totals is not None]:
            self._from_context(needing, taken)
        for part in without:
            self._global_steps(part)
        for course, parts in _by_course(taken):
            self._laps(
                course, [part for part in parts if part.epochs is None and part.steps is not None and part.totals is not None]
            )
            self._find_runs(course, parts)
        self._remember_context(taken)
        facts: list[Fact] = []
        for part in taken:
            if part.plan.values:
                for run, piece in self._by_run(part):
                    facts += self._facts(run, piece)
        placed = [*self._without_repeats(_in_order(facts)), *_pauses(taken)]
        if pieces is not None:
            known: dict[int, list[int]] = {}  # facts of the same lines share their list
            for fact, lines in [(fact, fact["lines"]) for fact in placed]:
                fact["lines"] = known[id(lines)] if id(lines) in known else known.setdefault(id(lines), pieces.lines_of(lines))
                for pause in fact.get("longest", ()):
                    pause[1:] = pieces.lines_of(pause[1:])
        return placed

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
            part.steps = list(map(add, map(starts.__getitem__, part.epochs), part.steps))
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
        lay = _together([part.lines for part, _ in placed])
        lines = lay([part.lines for part, _ in placed])
        positions = lay([positions for _, positions in placed])
        if self._only_rises(course, positions, lines):
            return
        for line, at in zip(lines, positions):
            if course.first is None:
                course.first = at
            elif course.last is not None and at < course.last and at <= course.first:
                self._begin_run(course.line, line)
                course.first = at
            course.last, course.line = at, line

    def _only_rises(self, course: Course, positions: list[float] | list[int], lines: list[int]) -> bool:
        if (course.last is not None and course.last > positions[0]) or not _rises(positions):
            return False
        course.first = positions[0] if course.first is None else course.first
        course.last, course.line = positions[-1], lines[-1]
        return True

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
        rising = part.steps is not None and _rises(part.steps)
        facts = []
        for name, values, digits in part.values:
            fact = columns(
                name, values, part.lines, steps=part.steps, epochs=part.epochs, times=part.times, run=run, prefix=prefix, digits=digits,
                rising=rising,
            )  # fmt: skip
            fact["bar"] = part.plan.layout.bar and "/" not in name
            facts.append(fact)
        return facts

    def _without_repeats(self, facts: Iterable[Fact]) -> Iterator[Fact]:
        """A bar repeats what it knows: a value counts when it changes, and once for each bar."""
        laps: dict[int, _Laps] = {}  # facts share their lists of epochs
        for fact in facts:
            if fact.pop("bar") and fact["values"]:
                epochs = fact["epochs"]
                if id(epochs) not in laps:
                    laps[id(epochs)] = _Laps(epochs)
                known = (fact["prefix"], fact["name"])
                changed, self._shown[known] = laps[id(epochs)].changes(fact["values"], self._shown.get(known))
                if False in changed:
                    for column in ("values", "lines", "steps", "epochs", "times"):
                        fact[column] = None if fact[column] is None else list(compress(fact[column], changed))
            yield fact


class _Laps:
    """The laps of the lines of bars, and where one ends."""

    def __init__(self, epochs: list[float] | None) -> None:
        self._epochs = epochs  # kept, so that no other list gets its id
        self._laps = None if epochs is None else list(map(int, epochs))
        self._turned = repeat(False) if self._laps is None else list(map(ne, self._laps[1:], self._laps))

    def changes(self, values: list[float], last: tuple[float, int] | None) -> tuple[list[bool], tuple[float, int]]:
        """Of each value whether it is not what was shown before in the same lap; and what is shown at the end."""
        laps = self._laps or [0]
        if isnan(sum(values)):
            changed: Iterable[bool] = [after is not before and after != before for before, after in pairwise(values)]
        else:
            changed = map(ne, values[1:], values)
        return [(values[0], laps[0]) != last, *map(or_, changed, self._turned)], (values[-1], laps[-1])


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
    lays: dict[tuple[int, ...], Lay] = {}
    laid: dict[tuple[int, ...], list[Any]] = {}  # facts of the same lines share their steps, epochs and times
    for parts in same.values():
        if len(parts) == 1:
            yield parts[0]
            continue
        lines = [part["lines"] for part in parts]
        key = tuple(map(id, lines))
        lay = lays[key] if key in lays else lays.setdefault(key, _together(lines))
        joined = {**parts[0], "values": lay([part["values"] for part in parts])}
        for column in ("lines", "steps", "epochs", "times"):
            columns_ = [part[column] for part in parts]
            if any(items is None for items in columns_):
                joined[column] = None
                continue
            key = tuple(map(id, columns_))
            joined[column] = laid[key] if key in laid else laid.setdefault(key, lay(columns_))
        joined["rising"] = False
        joined["bar"] = any(part["bar"] for part in parts)
        joined["digits"] = max((part["digits"] for part in parts if part["digits"] is not None), default=None)
        yield joined


def _together(lines: list[list[int]]) -> Lay:
    """How columns of several parts become one, by the lines of these parts, of which each is in order."""
    if len(lines) == 1:
        return lambda columns_: columns_[0]
    count = sum(map(len, lines))
    stretches = list(islice(_stretches(lines), count // FEWEST_IN_A_STRETCH + 1))
    if len(stretches) <= count // FEWEST_IN_A_STRETCH:
        return lambda columns_: list(chain.from_iterable(columns_[part][start:end] for part, start, end in stretches))
    flat = list(chain.from_iterable(lines))
    order = sorted(range(count), key=flat.__getitem__)
    return lambda columns_: list(map(list(chain.from_iterable(columns_)).__getitem__, order))


def _stretches(lines: list[list[int]]) -> Iterator[tuple[int, int, int]]:
    """Which part, from where to where, before a line of another part comes."""
    waiting = [(places[0], part, 0) for part, places in enumerate(lines) if places]
    heapify(waiting)
    while waiting:
        _, part, start = heappop(waiting)
        places = lines[part]
        end = bisect_left(places, waiting[0][0], start + 1) if waiting else len(places)
        yield part, start, end
        if end < len(places):
            heappush(waiting, (places[end], part, end))


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


def _latest(columns_: list[tuple[list[int], list[T]]], lines: list[int], before: T | None) -> list[T | None]:
    """For each line the item that stood last before it, in any of the columns."""
    if len(columns_) > MOST_PAIRWISE:
        pairs = sorted(
            ((line, item) for places, items in columns_ for line, item in zip(places, items)), key=lambda pair: pair[0]
        )
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


def _rises(column: list[Any]) -> bool:
    """Whether no item is less than the one before it; to sort what is in order already is quicker than to compare it item by item."""
    return column == sorted(column)
