"""Cures the zoo: every sick program is watched, its first finding is fixed, and the patched program is tried in the sandbox.

    python zoo/fix.py [PATTERN…] [--folder .trainsleuth/zoo-fix] [--budget 120s] [--again] [--diff]

Prints one row per program: the rule, what kind of remedy there is (patch, env, advice), whether a trial verified it, and why. What is done
is kept in the folder, so a second call goes on where the first one stopped; `--again` forgets the remedies and keeps the observations.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import tomllib
from check import HANG_AFTER, Specimen, observe, specimens

LIMIT = 400


def fixed(specimen: Specimen, folder: Path, budget: str) -> dict[str, Any]:
    """The row of one program; its observation is reused."""
    report = folder / "report.json"
    began = time.monotonic()
    if not report.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        observe(specimen.script, folder, *(("--hang-after", str(HANG_AFTER), "--on-hang", "kill") if specimen.about_standstills else ()))
    found = json.loads(report.read_text(encoding="utf-8"))["findings"]
    rule = tomllib.loads((specimen.script.parent / "case.toml").read_text(encoding="utf-8"))["rule"]
    finding = next((row["id"] for row in found if row["rule"] == rule), None)
    if finding is None:
        return {"rule": rule, "kind": "none", "verified": False, "why": "the finding was not made", "seconds": 0.0}
    command = [sys.executable, "-m", "trainsleuth", "fix", str(folder / "case"), finding, "--verify", "--budget", budget,
               "--json", str(folder / "fixed.json")]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT, check=False)
    (folder / "said.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    if done.returncode == 2 or not (folder / "fixed.json").exists():
        return {"rule": rule, "kind": "none", "verified": False, "why": (done.stderr.strip().splitlines() or ["?"])[-1], "seconds": 0.0}
    whole = json.loads((folder / "fixed.json").read_text(encoding="utf-8"))
    remedy = next(row for row in whole["findings"] if row["id"] == finding)["remedies"][0]
    said = next((row["line"] for row in whole["trials"] if row.get("finding") == finding and "remedy" in row), "")
    return {
        "rule": rule, "kind": remedy["kind"], "verified": remedy["verified"], "why": said.partition(": ")[2] or remedy["summary"],
        "summary": remedy["summary"], "diff": remedy["diff"], "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--folder", type=Path, default=Path(".trainsleuth") / "zoo-fix")
    parser.add_argument("--budget", default="120s")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--diff", action="store_true", help="show the patches too")
    options = parser.parse_args()
    chosen = [specimen for specimen in specimens(options.patterns) if specimen.expected is not None]
    width = max((len(specimen.name) for specimen in chosen), default=0)
    counted: Counter[str] = Counter()
    for specimen in chosen:
        folder = options.folder.resolve() / specimen.name.replace("/", "__").replace(" ", "_")
        kept = folder / "row.json"
        if kept.exists() and not options.again:
            row = json.loads(kept.read_text(encoding="utf-8"))
        else:
            try:
                row = fixed(specimen, folder, options.budget)
            except (OSError, ValueError, subprocess.SubprocessError, KeyError) as problem:
                row = {"rule": "?", "kind": "none", "verified": False, "why": f"could not be run: {problem}", "seconds": 0.0}
            folder.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(row), encoding="utf-8")
        counted[row["kind"]] += 1
        counted["verified"] += bool(row["verified"])
        mark = "verified" if row["verified"] else "-"
        print(f"{specimen.name.removesuffix(' sick'):<{width}}  {row['kind']:<7} {mark:<9} {row['seconds']:5.1f} s  {row['why'][:110]}", flush=True)
        if options.diff and row.get("diff"):
            print("\n".join(f"      {line}" for line in row["diff"].splitlines()))
    print(f"{len(chosen)} programs: {counted['patch']} patches, {counted['env']} variables, {counted['advice']} advice; "
          f"{counted['verified']} verified")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
