"""The shapes of the lines of a text log: lines that differ only in their digits, and in how far a bar is drawn, have one."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import chain, compress, repeat
from operator import ne

SOME_MASKS = 64  # of a block, to see whether most are one

_MASK = bytes.maketrans(b"123456789", b"0" * 9)
_DRAWN = re.compile(rb"\|[^|\n%]*\| |\[=[=>.]*\]")  # the part of a progress bar that grows


def shaped(block: bytes) -> tuple[dict[bytes, list[int]], dict[bytes, list[list[int]]]]:
    """The places of each shape, and how they are spread over masks (the line with each digit made a 0) where there are several."""
    grouped = _grouped(block.translate(_MASK).replace(b"\r", b"\n"))
    drawn = b"\n".join(grouped)
    if b"%|" in drawn or b"[=" in drawn:
        drawn = b"\n".join(_DRAWN.sub(b"||", mask) if b"%|" in mask or b"[=" in mask else mask for mask in grouped)
    shapes = drawn.translate(None, b"0").split(b"\n")
    groups = dict(zip(shapes, grouped.values()))
    if len(groups) == len(shapes):
        return groups, {}
    spread: defaultdict[bytes, list[list[int]]] = defaultdict(list)
    for shape, places in zip(shapes, grouped.values()):
        spread[shape].append(places)
    alike = {shape: parts for shape, parts in spread.items() if len(parts) > 1}
    groups.update((shape, sorted(chain.from_iterable(parts))) for shape, parts in alike.items())
    return groups, alike


def _grouped(masked: bytes) -> dict[bytes, list[int]]:
    """The places of each mask. Most lines of a log have one, or that of the line before: what goes without saying is left out of the counting."""
    length = masked.find(b"\n") + 1
    count = (len(masked) + 1) // length if length else 1
    if masked[:length] * count == masked + b"\n":
        return {masked[: length - 1]: list(range(count))}
    masks = masked.split(b"\n")
    usual = masks[len(masks) // 2]
    groups: defaultdict[bytes, list[int]] = defaultdict(list)
    some = range(0, len(masks) - 1, 1 + len(masks) // SOME_MASKS)
    start = 0
    if sum(masks[index] == usual for index in some) * 4 >= len(some) * 3:
        rest = groups[usual]
        for index in list(compress(range(len(masks)), map(ne, masks, repeat(usual)))):
            rest.extend(range(start, index))
            groups[masks[index]].append(index)
            start = index + 1
        rest.extend(range(start, len(masks)))
    elif sum(masks[index] == masks[index + 1] for index in some) * 4 >= len(some) * 3:
        for index in [*compress(range(1, len(masks)), map(ne, masks[1:], masks)), len(masks)]:
            groups[masks[start]].extend(range(start, index))
            start = index
    else:
        for index, mask in enumerate(masks):
            groups[mask].append(index)
    return groups


def most_frequent_first(new: list[bytes], groups: dict[bytes, list[int]]) -> list[bytes]:
    """New shapes, those first that come again: they are more likely to be about the training."""
    again = sorted((key for key in new if len(groups[key]) > 1), key=lambda key: -len(groups[key]))
    return again + [key for key in new if len(groups[key]) == 1]
