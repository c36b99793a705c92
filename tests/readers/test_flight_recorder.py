"""Flight recorder dumps of real ranks: read without unpickling, and held beside each other."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainsleuth.readers import flight_recorder
from trainsleuth.readers.plain_pickle import NotPlain, plain

PROGRAM = Path(__file__).with_name("flight_program.py")


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(PROGRAM.read_text().splitlines(), 1) if text in line)


def diagnosed(tmp_path: Path, how: str) -> dict[str, Any]:
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    environment = {**os.environ, "TORCH_FR_BUFFER_SIZE": "100", "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, str(PROGRAM), str(dumps), how], check=True, timeout=120, env=environment)
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "trainsleuth", "diagnose", *map(str, sorted(dumps.glob("nccl_trace_rank_*"))), "--json", str(report)]
    subprocess.run(command, check=False, timeout=120, stdout=subprocess.DEVNULL)
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def test_a_collective_that_one_rank_never_enters(tmp_path: Path) -> None:
    (finding,) = diagnosed(tmp_path, "missing")["findings"]
    assert finding["rule"] == "ranks/collective-missing"
    assert finding["title"] == "rank 0 waits in broadcast(2), which rank 1 never enters"
    assert [(Path(where["file"]).name, where["line"]) for where in finding["where"]] == [
        (PROGRAM.name, line_of("rank 0 goes on alone")),
        (PROGRAM.name, line_of("dist.all_reduce(torch.ones(4))")),
    ]
    assert finding["causes"][0]["status"] == "suspected"


def test_ranks_in_different_collectives(tmp_path: Path) -> None:
    (finding,) = diagnosed(tmp_path, "mismatch")["findings"]
    assert finding["rule"] == "ranks/collective-mismatch"
    assert finding["title"] == "at collective 4 the ranks call broadcast(2) and all_reduce(8)"
    assert [where["line"] for where in finding["where"]] == [line_of("rank 0 goes on alone"), line_of("rank 1 calls another")]


def test_ranks_that_did_the_same_are_no_finding(tmp_path: Path) -> None:
    report = diagnosed(tmp_path, "equal")
    assert report["findings"] == []
    assert report["verdict"] == "unsure"


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4) | st.integers(), inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(PLAIN, st.integers(2, 5))
def test_plain_data_is_read_as_it_was_written(value: Any, protocol: int) -> None:
    assert plain(pickle.dumps(value, protocol)) == value


class Harm:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_pickle_that_calls_something_is_refused_and_nothing_is_called(protocol: int, tmp_path: Path) -> None:
    path = tmp_path / "nccl_trace_rank_0"
    path.write_bytes(pickle.dumps({"pg_config": {}, "entries": [Harm(tmp_path / "touched")]}, protocol))
    facts = list(flight_recorder.read(path))
    assert [fact["k"] for fact in facts] == ["source", "skipped"]
    assert "to unpickle is to run what it says" in facts[1]["what"]
    assert not (tmp_path / "touched").exists()
    with pytest.raises(NotPlain):
        plain(path.read_bytes())


def test_a_pickle_in_which_lists_hold_each_other_is_read_without_growing(tmp_path: Path) -> None:
    nested: list[Any] = ["a"]
    for _ in range(60):
        nested = [nested, nested]
    nested.append(nested)
    entry = {"collective_seq_id": 1, "profiling_name": nested, "process_group": nested, "input_sizes": nested, "frames": nested, "state": nested}
    path = tmp_path / "nccl_trace_rank_3"
    path.write_bytes(pickle.dumps({"pg_config": {}, "entries": [entry, {**entry, "collective_seq_id": 10**5000}, nested]}, 4))
    facts = list(flight_recorder.read(path))
    assert [fact["k"] for fact in facts] == ["source", "flight", "skipped"]
    assert (facts[1]["rank"], facts[1]["name"]) == (3, "?")
    assert len(json.dumps(facts)) < 5000
