"""The quick way of taking numbers out of many lines gives the facts that the plain way gives, to the last bit."""

from __future__ import annotations

import importlib.util
import random
import struct
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from readers.test_structured_fuzz import edited, thrown
from trainsleuth.readers import text

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path for kind in ("healthy", "sick") for path in (ROOT / "tests" / "corpus" / kind).iterdir())
NEVER = 10**9


def layouts() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reading", ROOT / "bench" / "reading.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


READING = layouts()


def facts_of(content: bytes, blocks: int, alike: int, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    with monkeypatch.context() as patched:
        patched.setattr(text, "BLOCKS_BEFORE_GRIDS", blocks)
        patched.setattr(text, "FEWEST_ALIKE", alike)
        log = text.TextLog()
        return [*log.feed(content[: len(content) // 3]), *log.feed(content[len(content) // 3 :]), *log.finish()]


def bits(fact: Any) -> Any:
    """Floats by their bits: -0.0 is not 0.0, and nan is nan."""
    if isinstance(fact, dict):
        return {key: bits(value) for key, value in fact.items()}
    if isinstance(fact, list):
        return [bits(item) for item in fact]
    return (float, struct.pack("<d", fact)) if isinstance(fact, float) else (type(fact), fact)


def same_both_ways(content: bytes, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    plain = facts_of(content, NEVER, 1, monkeypatch)
    assert bits(facts_of(content, 0, 1, monkeypatch)) == bits(plain)
    return plain


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_log_of_the_corpus(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    same_both_ways(text.without_colours(path.read_bytes()), monkeypatch)


@pytest.mark.parametrize("layout", READING.LAYOUTS)
def test_a_layout_of_the_bench(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(layout)
    content = "".join(READING.LAYOUTS[layout](index, dice) for index in range(3000)).encode()
    facts = same_both_ways(content, monkeypatch)
    assert sum(len(fact["values"]) for fact in facts if fact["k"] == "points") > 500


NUMBERS = [
    "0", "-0.0", "+7", "007", "1.", ".5", "-.5", "1e5", "1e-05", "-2.5E+3", "4.9e-324", "1.8e308", "1e999", "0.1", "0.30000000000000004",
    "9007199254740993", "123456789012345678", "1234567890123456789", "99999999999999999999.5", "1e22", "1e23", "3.0e-22", "1.2.3",
    "1-2", "12", "345", "6789", "0.000123", "123.456", "8e", "--3", "1,234", "nan", "1e-330", "0.1234567890123456", "0.12345678901234567",
]  # fmt: skip
STAMPS = ["", "2025-10-19 10:38:20 ", "2025-10-19 10:38:20,123 ", "[10:38:20] ", "[23:59:59.5] ", "[00:00:01] ", "99:99:99 ", "2025-13-41 10:38:20 "]
FORMS = [
    "{s}step {a} loss {b} acc {c}", "{s}epoch={a} step={b} loss={c}",
    "{s}[{a}/30][{b}/1819] loss {c} ({c})", "{s}{{'loss': {a}, 'lr': {b}, 'epoch': {c}}}",
    "{s}Acc@{a} {b} Acc@5 {c}", "{a} {b} {c}", "{a},{b},{c}", "{s}iter {a}: loss {b}, time {c}ms", " {a}%|██| {b}/4 [00:01<00:02, {c}it/s, loss={b}]",
]  # fmt: skip
LINES = st.tuples(st.sampled_from(STAMPS), *[st.sampled_from(NUMBERS)] * 3)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(FORMS), st.lists(LINES, min_size=1, max_size=12), st.integers(1, 3), st.sampled_from(["\n", "\r"]))
def test_numbers_of_any_writing(form: str, rows: list[tuple[str, str, str, str]], times: int, end: str) -> None:
    lines = [form.format(s=s, a=a, b=b, c=c) + end for s, a, b, c in rows]
    with pytest.MonkeyPatch.context() as monkeypatch:
        same_both_ways("".join(lines * times).encode(), monkeypatch)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_damaged_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = [path.read_bytes()[:6000] for path in FILES]
    for number in range(3000):
        dice = random.Random(number)
        same_both_ways(edited(dice.choice(seeds), thrown(dice)), monkeypatch)


READ = """
import sys
from pathlib import Path
from trainsleuth.readers import text
count = sum(len(fact["values"]) for fact in text.read(Path(sys.argv[1])) if fact["k"] == "points")
print(count, "numpy" in sys.modules)
"""


def test_numpy_is_imported_for_a_long_log_and_not_for_a_short_one(tmp_path: Path) -> None:
    for name, blocks, imported in (("short.log", 1, False), ("long.log", text.BLOCKS_BEFORE_GRIDS + 2, True)):
        lines = blocks * text.BLOCK // 24
        (tmp_path / name).write_bytes(b"".join(b"step %07d loss 0.5000\n" % index for index in range(lines)))
        done = subprocess.run([sys.executable, "-c", READ, str(tmp_path / name)], capture_output=True, text=True, check=True)
        assert done.stdout.split() == [str(lines), str(imported)]
