"""No text breaks the reader: it ends, gives facts, and what it gives is whole."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainsleuth.case.record_chart import RecordChart
from trainsleuth.readers import csv_table, text
from trainsleuth.readers.line_layout import layout_of
from trainsleuth.rules.arbiter import diagnose_records

CORPUS = Path(__file__).resolve().parent.parent / "corpus"
FILES = sorted(path for kind in ("healthy", "sick") for path in (CORPUS / kind).iterdir())
PIECES = ["loss", "epoch", " ", ":", "=", "[", "]", "(", ")", "{", "}", "/", "|", "nan", "inf", "-", "1", "0.5", "1e999", "3/30", "\n", "\r", "\t",
          "10%|█| 1/10 [00:01<00:02, 3it/s]", "2025-10-19 10:38:20", "99:99:99", "損失", "：", "\x1b[0m", "\x08",
          "Traceback (most recent call last):", ",",
          "9" * 400, "step", "'", '"', "null", "File \"a\", line 1", "."]  # fmt: skip


def absorbed(content: bytes) -> RecordChart:
    chart = RecordChart()
    source = chart.source("a", "a", True)
    log = text.TextLog()
    half = len(content) // 2
    for fact in [*log.feed(content[:half]), *log.feed(content[half:]), *log.finish()]:
        if fact["k"] == "points":
            lengths = {len(fact[column]) for column in ("values", "lines", "steps", "epochs", "times") if fact[column] is not None}
            assert len(lengths) == 1
        source.absorb(fact)
    assert not [s for s in source.skipped if "not whole" in s["what"]]
    diagnose_records(chart)
    return chart


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(PIECES), max_size=60))
def test_any_line_of_familiar_pieces(pieces: list[str]) -> None:
    content = "".join(pieces).encode()
    absorbed(content)
    layout_of(content)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=400))
def test_any_bytes(content: bytes) -> None:
    absorbed(content)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_log_that_was_cut_and_damaged(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()[:20_000]
    dice = random.Random(path.name)
    for _ in range(4):
        damaged = bytearray(whole[: dice.randrange(1, len(whole) + 1)])
        for _ in range(dice.randrange(0, 40)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        absorbed(bytes(damaged))
        file = tmp_path / "damaged.csv"
        file.write_bytes(damaged)
        chart = RecordChart().source("a", "a", True)
        for fact in csv_table.read(file):
            chart.absorb(fact)
