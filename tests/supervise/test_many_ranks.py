"""A thousand ranks: their facts are read and held side by side."""

from __future__ import annotations

import json
from pathlib import Path

from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules.arbiter import diagnose

RANKS = 1024


def facts_of(rank: int, weight: float) -> str:
    place = ["/somewhere/train.py", 30, "main"]
    rows = [{"k": "process", "t": 1.0, "schema": 1, "pid": 1000 + rank, "parent": 1, "rank": rank, "world": RANKS, "host": "node"},
            {"k": "environment", "t": 1.1, "torch": "2.13", "threads": 1, "variables": {}},
            {"k": "optimizer", "t": 1.2, "id": "o1", "kind": "SGD", "at": place, "groups": [{"settings": {"lr": 0.1}, "params": [1, 2]}],
             "params": [[1, "weight", [4, 4], "float32", True, None], [2, "bias", [4], "float32", True, None]]},
            {"k": "ddp", "t": 1.3, "at": place, "find_unused": False}]  # fmt: skip
    for window in range(1, 40):
        rows.append({"k": "params", "t": 2.0 + window, "opt": "o1", "window": window,
                     "rows": [[1, True, True, True, 0.5 / window, weight, 0.01, 1.0],
                              [2, True, True, True, 0.1 / window, 1.0, 0.01, 1.0]]})  # fmt: skip
        rows.append({"k": "windows", "t": 2.0 + window, "opt": "o1", "to": window, "n": 1, "watched": 1, "backwards": 1, "delivered": 1,
                     "discarded": 0, "stale": 0, "skipped": 0, "surgery": 0, "rates": [[0.1, 0.1, 0.1]], "step_at": place,
                     "cleared_at": None})  # fmt: skip
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_one_rank_of_a_thousand_has_other_weights(tmp_path: Path) -> None:
    facts = tmp_path / "facts"
    facts.mkdir()
    for rank in range(RANKS):
        (facts / f"{rank:05d}.jsonl").write_text(facts_of(rank, 3.0 if rank != 700 else 4.0), encoding="utf-8")
    run = RunChart(facts)
    run.refresh()
    assert len(run.processes) == RANKS
    diagnosis = diagnose(run)
    assert [finding.rule for finding in diagnosis.findings] == ["ranks/diverged-weights"]
    assert "700" in diagnosis.findings[0].title
