"""Whatever is done to a file, its reader ends, gives whole facts, no more than the bytes can hold, and raises nothing.

`make test` tries a few hundred; the marker `long` (in `make test-all`) brings all readers together to more than a hundred thousand.
"""

from __future__ import annotations

import json
import pickle
import random
import resource
import struct
import zlib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainsleuth.case.record_chart import SourceRecord
from trainsleuth.readers.crc32c import masked
from trainsleuth.readers.leveldb_log import BlockLog

CORPUS = Path(__file__).parents[1] / "corpus"
RECORDS = CORPUS / "records"
FEW, MANY = 40, 10_000
Edit = tuple[str, float, int, bytes]

SEEDS: dict[str, list[Path]] = {
    "tensorboard": sorted(RECORDS.rglob("*tfevents*")),
    "wandb_file": [RECORDS / "wandb_run" / "run-lost.wandb"],
    "wandb_log": [RECORDS / "wandb_run" / "logs" / "debug-internal.log"],
    "lightning_csv": [RECORDS / "lightning" / "version_0" / "metrics.csv"],
    "keras_csv": [RECORDS / "keras_log.csv"],
    "trainer_state": [RECORDS / "trainer" / "trainer_state.json"],
    "mlflow_store": sorted(RECORDS.glob("mlruns/0/*/metrics/*/*")),
    "yaml_config": [RECORDS / "lightning" / "version_0" / "hparams.yaml", *RECORDS.glob("mlruns/0/meta.yaml")],
    "flight_recorder": sorted(RECORDS.glob("fr_trace_rank_*.json")),
    "tracebacks": sorted((CORPUS / "tracebacks").rglob("*.txt")),
    "csv_table": sorted(CORPUS.glob("healthy/*.csv")) + [RECORDS / "keras_log.csv"],
    "text": sorted(path for kind in ("healthy", "sick") for path in (CORPUS / kind).iterdir()),
}
LONGEST = 6_000  # bytes that are kept of a text, which has nothing that other parts of the file must fit
MOST_GROWTH = 500  # megabytes, over ten thousand files
KINDS = ("set", "insert", "delete", "repeat", "cut", "swap")
EDITS = st.lists(
    st.tuples(
        st.sampled_from(KINDS), st.floats(0, 1), st.integers(1, 300), st.binary(min_size=1, max_size=12)
    ),
    max_size=8,
)  # fmt: skip
QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much)


def edited(content: bytes, edits: list[Edit]) -> bytes:
    for what, share, size, new in edits:
        at = int(share * len(content))
        if what == "set":
            content = content[:at] + new + content[at + len(new) :]
        elif what == "insert":
            content = content[:at] + new + content[at:]
        elif what == "delete":
            content = content[:at] + content[at + size :]
        elif what == "repeat":
            content = content[:at] + content[at : at + size] * 3 + content[at + size :]
        elif what == "swap":
            content = content[at : at + size] + content[:at] + content[at + size :]
        else:
            content = content[:at]
    return content


def inside_events(content: bytes, edits: list[Edit]) -> bytes:
    """The edits made within records, whose sums are then right again: what they hold is wrong, not how it is framed."""
    found, at = [], 0
    while at + 12 <= len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        found.append(content[at + 12 : at + 12 + length])
        at += length + 16
    for number, edit in enumerate(edits):
        index = (int(edit[1] * len(found)) + number) % len(found)
        found[index] = edited(found[index], [(edit[0], (edit[1] * 7919) % 1, edit[2] % 20 + 1, edit[3])])
    framed = []
    for record in found:
        length_bytes = struct.pack("<Q", len(record))
        framed.append(length_bytes + struct.pack("<I", masked(length_bytes)) + record + struct.pack("<I", masked(record)))
    return b"".join(framed)


def inside_wandb(content: bytes, edits: list[Edit]) -> bytes:
    import io

    found = list(BlockLog(io.BytesIO(content), 7).records())
    for number, edit in enumerate(edits):
        index = (int(edit[1] * len(found)) + number) % len(found)
        found[index] = edited(found[index], [(edit[0], (edit[1] * 7919) % 1, edit[2] % 20 + 1, edit[3])])[:30_000]
    framed = content[:7]
    for record in found:
        if 32768 - len(framed) % 32768 < len(record) + 7:
            framed += bytes(32768 - len(framed) % 32768)
        framed += struct.pack("<IHB", zlib.crc32(b"\x01" + record), len(record), 1) + record
    return framed


def check(reader: Any, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    reader.recognises(path, content[:65536])
    source = SourceRecord(str(path))
    values = facts = 0
    for fact in reader.read(path):
        facts += 1
        assert isinstance(fact["k"], str)
        if fact["k"] == "points":
            lengths = {
                len(fact[column]) for column in ("values", "lines", "steps", "epochs", "times") if fact[column] is not None
            }
            assert len(lengths) == 1
            values += len(fact["values"])
        source.absorb(fact)
    assert not [skip for skip in source.skipped if skip["what"].startswith("a fact of kind")]
    assert facts + values <= 4 * len(content) + 64, "a reader gives no more than there is"


def seeds_of(reader: str) -> list[tuple[Path, bytes]]:
    """Names and contents to begin with; of the flight recorder in its other form, too."""
    seeds = [(path, path.read_bytes()[: LONGEST if reader == "text" else None]) for path in SEEDS[reader]]
    if reader == "flight_recorder":
        seeds += [(Path(path.stem), pickle.dumps(json.loads(content), 2)) for path, content in seeds]
    return seeds


def fuzz(reader: str, tmp_path: Path, examples: int, mutate: Callable[[bytes, list[Edit]], bytes] = edited) -> None:
    module = import_module(f"trainsleuth.readers.{reader}")
    seeds = seeds_of(reader)
    assert seeds

    @settings(max_examples=examples, deadline=None, suppress_health_check=QUIET, database=None)
    @given(st.integers(0, len(seeds) - 1), EDITS)
    def one(index: int, edits: list[Edit]) -> None:
        path, content = seeds[index]
        check(module, tmp_path / path.name, mutate(content, edits))

    one()


@pytest.mark.parametrize("reader", SEEDS)
def test_damaged_files(reader: str, tmp_path: Path) -> None:
    fuzz(reader, tmp_path, FEW)


def test_a_head_with_a_quote_that_does_not_end_is_no_table(tmp_path: Path) -> None:
    from trainsleuth.readers import csv_table

    assert not csv_table.recognises(tmp_path / "a.csv", b'"step,loss\n1,0.5\n2,0.4\n')


def test_well_framed_nonsense(tmp_path: Path) -> None:
    fuzz("tensorboard", tmp_path, FEW, inside_events)
    fuzz("wandb_file", tmp_path, FEW, inside_wandb)


def thrown(dice: random.Random) -> list[Edit]:
    return [
        (dice.choice(KINDS), dice.random(), dice.randrange(1, 300), dice.randbytes(dice.randrange(1, 12)))
        for _ in range(dice.randrange(1, 8))
    ]


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("reader", "mutate"), [*((reader, edited) for reader in SEEDS), ("tensorboard", inside_events), ("wandb_file", inside_wandb)]
)
def test_many_damaged_files(reader: str, mutate: Callable[[bytes, list[Edit]], bytes], tmp_path: Path) -> None:
    """By plain dice, of which a machine throws many more than of hypothesis' examples."""
    module = import_module(f"trainsleuth.readers.{reader}")
    seeds = seeds_of(reader)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(MANY):
        dice = random.Random(f"{reader} {number}")
        path, content = dice.choice(seeds)
        check(module, tmp_path / path.name, mutate(content, thrown(dice)))
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < MOST_GROWTH


@pytest.mark.parametrize("reader", SEEDS)
@pytest.mark.parametrize(
    "content", [b"", b"\0" * 200_000, b"\xff" * 200_000, b"[" * 200_000, b"{" * 100_000, b"a" * 300_000, b"- " * 50_000]
)
def test_monotonous_files(reader: str, content: bytes, tmp_path: Path) -> None:
    check(import_module(f"trainsleuth.readers.{reader}"), tmp_path / "file", content)
