"""Logs of which hardly a line is like another: what makes them fast loses nothing."""

from __future__ import annotations

import random

import pytest

from trainsleuth.readers.line_layout import layout_of, may_tell_numbers
from trainsleuth.readers.table_rows import row_of
from trainsleuth.readers.text import NEW_SHAPES_AT_FIRST, TextLog
from trainsleuth.readers.text_shapes import _by_equality, _by_mask, _by_shape, _masked
from trainsleuth.readers.tracebacks_in_text import TracebackCollector

PIECES = [
    b"nan", b"inf", b"null", b"None", b"INFO", b"epoch", b"12:30", b"12:30:45", b"3.5", b"####", b"----", b"%|", b"| ", b"[=>]", b"part-01.tar",
    b"v2", b"2025-01-01 10:00:00", b"W0102 10:00:00", *(bytes([sign]) for sign in b"aX_@#5 .:=-+/()[]|%,nife1"),
]  # fmt: skip


def noise(seed: int, count: int) -> list[bytes]:
    rng = random.Random(seed)
    return [b"".join(rng.choices(PIECES, k=rng.randrange(1, 9))) for _ in range(count)]


def test_a_line_that_is_not_read_holds_nothing() -> None:
    unread = [line for line in noise(1, 20_000) if not may_tell_numbers(line)]
    assert len(unread) > 1_000
    for line in unread:
        layout = layout_of(line)
        found = [*layout.values, *layout.nulls, *filter(None, (layout.epoch, layout.step, row_of(line)))]
        assert not found, line


@pytest.mark.parametrize("end", [b"\n", b"\r"])
def test_both_ways_lead_to_the_same_shapes(end: bytes) -> None:
    lines = random.Random(2).choices(noise(2, 800), k=2_000)
    block = end.join(lines)
    first = _by_mask(lines, _by_equality(_masked(block).split(b"\n"), range(len(lines))))
    second = _by_shape(block, lines)
    shapes = first.new(())
    assert shapes == second.new(())
    assert first.most_frequent((), 500) == second.most_frequent((), 500)
    for shape in shapes:
        assert first.places(shape) == second.places(shape)
        assert sorted(first.alike(shape)) == sorted(second.alike(shape))


@pytest.mark.parametrize(
    "line",
    [
        b"Traceback (most recent call last):", b"[rank]: Traceback (most recent call last):", b"(worker pid=) Thread x (most recent call first):",
        b"Process : python train.py", b": Segmentation fault (core dumped)", b"run.sh: line :   Killed   python x.py", b"#  x in poll ()",
        b"slurmstepd: error: Detected  oom_kill event in StepId=", b"  what():  CUDA error", b"KeyError: 'a'", b"zoomError: ",
    ],
)  # fmt: skip
def test_what_may_begin_a_traceback_is_found_among_chatter(line: bytes) -> None:
    chatter = [b"INFO the room for Process and Thread is # full", b"my KeyError: no", b"Killing is not what it means"]
    assert TracebackCollector.among([*chatter, line, *chatter]) == {line}


def test_shapes_that_are_not_learnt_are_not_kept() -> None:
    log = TextLog()
    letters = random.Random(3)
    for _ in range(3):
        words = ["".join(letters.choices("abcdefgh", k=12)) for _ in range(NEW_SHAPES_AT_FIRST * 2)]
        log.feed("".join(f"Thread {word}\n" for word in words).encode())
    assert len(log._alarming) <= len(log._plans)
