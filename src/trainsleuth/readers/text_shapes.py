"""The shapes of the lines of a text log: lines that differ only in their digits, and in how far a bar is drawn, have one.

Two ways lead to the same shapes. Where most lines are alike, they are grouped by their masks first, and only the few masks are made
shapes. Where hardly any line is like another, all lines are made shapes, and nothing is done for a shape that comes but once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable
from itertools import chain, compress, filterfalse, islice, repeat
from operator import ne

from trainsleuth.readers.text_search import spans_with

SOME_LINES = 64  # of a block, to see whether most are alike

_DIGITS = b"0123456789"
_MASK = bytes.maketrans(b"123456789", b"0" * 9)
_DRAWN = re.compile(rb"\|[^|\n%]*\| |\[=[=>.]*\]")  # the part of a progress bar that grows


class Shapes:
    """The shapes of a block in the order in which they come, and the places of the lines that have them."""

    def __init__(
        self, lines: list[bytes], last: dict[bytes, int], again: dict[bytes, list[int]], alike: dict[bytes, list[list[int]]] | None = None
    ) -> None:
        self._lines = lines
        self._last = last  # of each shape, its last place
        self._again = again  # all places, of those that come more than once
        self._alike = alike

    def __contains__(self, shape: bytes) -> bool:
        return shape in self._last

    def places(self, shape: bytes) -> list[int]:
        return self._again.get(shape) or [self._last[shape]]

    def alike(self, shape: bytes) -> list[list[int]]:
        """Its places, spread over masks (the line with each digit made a 0)."""
        places = self.places(shape)
        if self._alike is not None:
            return self._alike.get(shape, [places])
        masks = b"\n".join([self._lines[place] for place in places]).translate(_MASK).split(b"\n")
        return list(_by_equality(masks, places).values())

    def known(self, plans: Container[object]) -> list[bytes]:
        return list(filter(plans.__contains__, self._last))

    def new(self, plans: Container[object]) -> list[bytes]:
        return list(filterfalse(plans.__contains__, self._last))

    def most_frequent(self, plans: Container[object], most: int) -> list[bytes]:
        """New shapes, those first that come again: they are more likely to be about the training."""
        again = sorted(filterfalse(plans.__contains__, self._again), key=lambda shape: -len(self._again[shape]))
        once = (shape for shape in self._last if shape not in plans and shape not in self._again)
        return list(islice(chain(again, once), most))


def shaped(block: bytes, lines: list[bytes]) -> Shapes:
    """`lines` are those of the block; a carriage return ends one, too."""
    some = range(0, len(lines) - 1, 1 + len(lines) // SOME_LINES)
    masks = [lines[index].translate(_MASK) for index in some]
    usual = lines[len(lines) // 2].translate(_MASK)
    if masks.count(usual) * 4 >= len(masks) * 3:
        return _by_mask(lines, _mostly(usual, _masked(block)))
    if sum(mask == lines[index + 1].translate(_MASK) for index, mask in zip(some, masks)) * 4 >= len(masks) * 3:
        return _by_mask(lines, _in_stretches(_masked(block).split(b"\n")))
    if len(set(masks)) * 2 <= len(masks):
        return _by_mask(lines, _by_equality(_masked(block).split(b"\n"), range(len(lines))))
    return _by_shape(block, lines)


def _masked(block: bytes) -> bytes:
    return block.translate(_MASK).replace(b"\r", b"\n")


def _by_mask(lines: list[bytes], grouped: dict[bytes, list[int]]) -> Shapes:
    drawn = b"\n".join(grouped)
    if b"%|" in drawn or b"[=" in drawn:
        drawn = b"\n".join(_DRAWN.sub(b"||", mask) if b"%|" in mask or b"[=" in mask else mask for mask in grouped)
    shapes = drawn.translate(None, b"0").split(b"\n")
    groups = dict(zip(shapes, grouped.values()))
    alike: dict[bytes, list[list[int]]] = {}
    if len(groups) < len(shapes):
        spread: defaultdict[bytes, list[list[int]]] = defaultdict(list)
        for shape, places in zip(shapes, grouped.values()):
            spread[shape].append(places)
        alike = {shape: parts for shape, parts in spread.items() if len(parts) > 1}
        groups.update((shape, sorted(chain.from_iterable(parts))) for shape, parts in alike.items())
    last = {shape: places[-1] for shape, places in groups.items()}
    return Shapes(lines, last, {shape: places for shape, places in groups.items() if len(places) > 1}, alike)


def _mostly(usual: bytes, masked: bytes) -> dict[bytes, list[int]]:
    """The places of each mask, where most lines have the usual one: what goes without saying is left out of the counting."""
    count = (len(masked) + 1) // (len(usual) + 1)
    if (usual + b"\n") * count == masked + b"\n":
        return {usual: list(range(count))}
    masks = masked.split(b"\n")
    groups: defaultdict[bytes, list[int]] = defaultdict(list)
    rest = groups[usual]
    start = 0
    for index in list(compress(range(len(masks)), map(ne, masks, repeat(usual)))):
        rest.extend(range(start, index))
        groups[masks[index]].append(index)
        start = index + 1
    rest.extend(range(start, len(masks)))
    return groups


def _in_stretches(masks: list[bytes]) -> dict[bytes, list[int]]:
    """The places of each mask, where most lines have that of the line before."""
    groups: defaultdict[bytes, list[int]] = defaultdict(list)
    start = 0
    for index in [*compress(range(1, len(masks)), map(ne, masks[1:], masks)), len(masks)]:
        groups[masks[start]].extend(range(start, index))
        start = index
    return groups


def _by_shape(block: bytes, lines: list[bytes]) -> Shapes:
    """A loop is run only over the lines whose shape comes again further down."""
    shapes = _undrawn(block.replace(b"\r", b"\n")).translate(None, _DIGITS).split(b"\n")
    places = range(len(shapes))
    last = dict(zip(shapes, places))
    earlier = list(compress(places, map(ne, map(last.__getitem__, shapes), places))) if len(last) < len(shapes) else []
    again = _by_equality(map(shapes.__getitem__, earlier), earlier)
    for shape, found in again.items():
        found.append(last[shape])
    return Shapes(lines, last, again)


def _by_equality(texts: Iterable[bytes], places: Iterable[int]) -> dict[bytes, list[int]]:
    groups: defaultdict[bytes, list[int]] = defaultdict(list)
    for text, place in zip(texts, places):
        groups[text].append(place)
    return groups


def _undrawn(text: bytes) -> bytes:
    parts: list[bytes] = []
    done = 0
    for start, end in sorted({*spans_with(b"%|", text), *spans_with(b"[=", text)}):
        parts += text[done:start], _DRAWN.sub(b"||", text[start:end])
        done = end
    return b"".join([*parts, text[done:]]) if parts else text
