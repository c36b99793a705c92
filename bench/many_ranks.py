"""How long the facts of a thousand ranks take to be read, held side by side and judged.

python bench/many_ranks.py [RANKS] [PARAMETERS]      1024 ranks of a model with 50 parameters by default, simulated as facts on disk

One rank has other weights than the rest, which must be found. Time is given twice: by the clock, and of the processor, which a busy
machine disturbs less. Writing the files is not counted.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

from trainsleuth.case.run_chart import RunChart
from trainsleuth.rules.arbiter import diagnose

WINDOWS = 40
LINE = ["/somewhere/train.py", 30, "main"]


def facts_of(rank: int, ranks: int, parameters: int, other: bool) -> str:
    """What the probes of one rank write in forty steps, each of them looked at."""
    rows: list[dict[str, object]] = [
        {"k": "process", "t": 1.0, "schema": 1, "pid": 1000 + rank, "parent": 1, "rank": rank, "world": ranks, "host": "node"},
        {"k": "environment", "t": 1.1, "torch": "2.13", "threads": 1, "variables": {}},
        {"k": "optimizer", "t": 1.2, "id": "o1", "kind": "SGD", "at": LINE,
         "groups": [{"settings": {"lr": 0.1}, "params": list(range(1, parameters + 1))}],
         "params": [[number, f"layers.{number}.weight", [64, 64], "float32", True, None] for number in range(1, parameters + 1)]},
        {"k": "ddp", "t": 1.3, "at": LINE, "find_unused": False},
    ]  # fmt: skip
    for window in range(1, WINDOWS + 1):
        t, loss = 2.0 + window, 2.3 / window
        rows += [
            {"k": "params", "t": t, "opt": "o1", "window": window,
             "rows": [[number, True, True, True, 0.5 / window / number, 4.0 if other and number == 1 else 3.0, 0.01, 1.0]
                      for number in range(1, parameters + 1)]},
            {"k": "windows", "t": t, "opt": "o1", "to": window, "n": 1, "watched": 1, "backwards": 1, "delivered": 1, "discarded": 0,
             "stale": 0, "skipped": 0, "surgery": 0, "rates": [[0.1, 0.1, 0.1]], "step_at": LINE, "cleared_at": None},
            {"k": "loss", "t": t, "at": LINE, "to": window, "n": 1, "mean": loss, "least": loss, "most": loss, "last": loss,
             "not_finite": 0, "window": window},
        ]  # fmt: skip
    return "".join(json.dumps(row) + "\n" for row in rows)


def main() -> None:
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    parameters = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    odd = ranks * 7 // 10
    with tempfile.TemporaryDirectory() as folder:
        facts = Path(folder) / "facts"
        facts.mkdir()
        for rank in range(ranks):
            (facts / f"{rank:05d}.jsonl").write_text(facts_of(rank, ranks, parameters, rank == odd), encoding="utf-8")
        size = sum(path.stat().st_size for path in facts.iterdir()) / 1e6
        run = RunChart(facts)
        clock, processor = time.perf_counter(), time.process_time()
        count = run.refresh()
        read_clock, read_processor = time.perf_counter() - clock, time.process_time() - processor
        diagnosis = diagnose(run)
        whole_clock, whole_processor = time.perf_counter() - clock, time.process_time() - processor
    found = [finding.title for finding in diagnosis.findings]
    print(f"{ranks:,} ranks, {count:,} facts, {size:.0f} MB")
    print(f"{'':<18} {'s by the clock':>15} {'s of processor':>15}")
    print(f"{'read and merged':<18} {read_clock:>15.1f} {read_processor:>15.1f}")
    print(f"{'judged':<18} {whole_clock - read_clock:>15.1f} {whole_processor - read_processor:>15.1f}")
    print(f"{'together':<18} {whole_clock:>15.1f} {whole_processor:>15.1f}")
    print(f"peak of memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")
    print(f"found: {'; '.join(found) or 'nothing'}")


if __name__ == "__main__":
    main()
