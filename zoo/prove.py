"""Proves the zoo: what is suspected of every sick program, what its trials say, and whether the patch holds; one table.

    python zoo/prove.py [PATTERN…] [--results FILE] [--budget 3m] [--jobs 1] [--again] [--fix]

Each program is run under observation, then `prove` settles what can be settled; with --fix, `fix --verify` tries the patch. Results are kept
in a JSON file after each program, and a second call goes on where the first was stopped. With several jobs, each has one core for itself.
`--healthy` takes the healthy programs instead: nothing of them may be confirmed.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from check import HANG_AFTER, Specimen, observe, specimens

LIMIT = 1200


def trainsleuth(folder: Path, *words: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "trainsleuth", *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, timeout=LIMIT, check=False,
    )  # fmt: skip


def prove(specimen: Specimen, budget: str, fix: bool) -> dict[str, Any]:
    options = ("--hang-after", str(HANG_AFTER), "--on-hang", "kill") if specimen.about_standstills else ()
    with tempfile.TemporaryDirectory(prefix="trainsleuth-zoo-") as name:
        folder = Path(name)
        observe(specimen.script, folder, *options)
        began = time.monotonic()
        trainsleuth(folder, "prove", "case", "--budget", budget)
        seconds = time.monotonic() - began
        if fix:
            trainsleuth(folder, "fix", "case", "--verify", "--budget", budget)
        report = json.loads((folder / "case" / "report.json").read_text(encoding="utf-8"))
    return {"expected": (specimen.expected or {}).get("rule"), "seconds": round(seconds, 1), "findings": _findings(report)}


def _findings(report: dict[str, Any]) -> list[dict[str, Any]]:
    rows = []
    for finding in report["findings"]:
        if finding["severity"] == "note":
            continue
        said = {
            row["cause"]: row["verdict"] for row in report["trials"] if row.get("finding") == finding["id"] and "verdict" in row
        }
        causes = [
            {"rule": cause["rule"], "status": said.get(cause["rule"], "not tried"), "why": cause.get("why", "")}
            for cause in finding["causes"]
        ]
        verified = any(remedy["verified"] for remedy in finding["remedies"])
        rows.append({"rule": finding["rule"], "causes": causes, "verified": verified})
    return rows


def _cores(jobs: int) -> queue.SimpleQueue[set[int]]:
    """What each job may use: all cores for one job alone, else one core each."""
    cores = sorted(os.sched_getaffinity(0))
    shares: queue.SimpleQueue[set[int]] = queue.SimpleQueue()
    for job in range(jobs):
        shares.put({cores[job % len(cores)]} if jobs > 1 else set(cores))
    return shares


def _on_a_core_of_its_own(shares: queue.SimpleQueue[set[int]]) -> None:
    os.sched_setaffinity(0, shares.get())  # of this thread, and of every process that it starts


def line(name: str, row: dict[str, Any], width: int) -> str:
    words = []
    for finding in row["findings"]:
        for cause in finding["causes"] or [{"rule": finding["rule"], "status": "not tried"}]:
            words.append(f"{cause['rule']}: {cause['status']}")
        if finding["verified"]:
            words.append("patch verified")
    return f"{name:<{width}}  {row['seconds']:6.1f} s  {'; '.join(words) or 'nothing suspected'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--results", type=Path, default=Path("zoo-prove.json"))
    parser.add_argument("--budget", default="3m")
    parser.add_argument("--jobs", type=int, default=1, help="programs at once, each on a core of its own")
    parser.add_argument("--again", action="store_true", help="forget earlier results of the chosen programs")
    parser.add_argument("--fix", action="store_true", help="try the patches too")
    parser.add_argument("--healthy", action="store_true", help="the healthy programs instead of the sick ones")
    options = parser.parse_args()
    chosen = [one for one in specimens(options.patterns) if (one.expected is None) == options.healthy]
    known: dict[str, Any] = json.loads(options.results.read_text(encoding="utf-8")) if options.results.exists() else {}
    width = max((len(one.name) for one in chosen), default=0)
    missing = [one for one in chosen if options.again or one.name not in known]
    for one in chosen:
        if one not in missing:
            print(line(one.name, known[one.name], width), flush=True)
    with ThreadPoolExecutor(options.jobs, initializer=_on_a_core_of_its_own, initargs=(_cores(options.jobs),)) as workers:
        running = {workers.submit(prove, one, options.budget, options.fix): one for one in missing}
        for done in as_completed(running):
            name = running[done].name
            try:
                known[name] = done.result()
            except (OSError, ValueError, subprocess.SubprocessError) as problem:
                print(f"{name:<{width}}  could not be run: {problem}", flush=True)
                continue
            options.results.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
            print(line(name, known[name], width), flush=True)
    rows = [known[one.name] for one in chosen if one.name in known]
    sick = [row for row in rows if row["expected"]]
    true = Counter(_of_the_true_cause(row) for row in sick)
    print(f"the true cause of {len(sick)} programs: " + ", ".join(f"{status} {count}" for status, count in true.most_common()))
    if options.fix:
        cured = sum(any(finding["verified"] for finding in row["findings"]) for row in sick)
        print(f"a patch verified: {cured} of {len(sick)}; {sum(row['seconds'] for row in rows) / 60:.0f} minutes of proof")
    return 0


def _of_the_true_cause(row: dict[str, Any]) -> str:
    for finding in row["findings"]:
        for cause in finding["causes"]:
            if cause["rule"] == row["expected"]:
                return str(cause["status"])
    return "not suspected"


if __name__ == "__main__":
    sys.exit(main())
