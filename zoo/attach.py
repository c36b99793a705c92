"""Starts each program of zoo/hang that stands still without TrainSleuth, attaches to it from outside, and prints what was said.

    python zoo/attach.py [PATTERN…] [--wait 12]

A program passes when its rule is the first finding and names a guilty line. What the table cannot expect: causes that only a run that was
watched from its start knows (`attachable = false` in case.toml). Ends with `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from check import Specimen, judge, specimens, table

LIMIT = 60


def attached(specimen: Specimen, folder: Path, wait: float) -> tuple[bool, str, float]:
    """What `attach` says of the program once it had the time to come to its standstill, and how long that took."""
    with open(folder / "printed.txt", "wb") as printed:
        program = subprocess.Popen(
            [sys.executable, str(specimen.script)], cwd=folder, stdin=subprocess.PIPE, stdout=printed, stderr=printed, start_new_session=True
        )  # fmt: skip
    try:
        try:
            program.wait(wait)
            return False, "the program ended by itself", 0.0
        except subprocess.TimeoutExpired:
            pass
        report = folder / "report.json"
        began = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "trainsleuth", "attach", str(program.pid), "--case", str(folder / "case"), "--json", str(report)],
            cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT, check=False,
        )  # fmt: skip
        seconds = time.monotonic() - began
        passed, words = judge(specimen, json.loads(report.read_text(encoding="utf-8")))
        return passed, words, seconds
    except (OSError, ValueError, subprocess.SubprocessError) as problem:
        return False, f"could not be attached to: {problem}", 0.0
    finally:
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--wait", type=float, default=12, help="seconds until the program surely stands still")
    options = parser.parse_args()
    chosen = [s for s in specimens(options.patterns) if s.expected is not None and s.expected.get("attachable")]

    def one(specimen: Specimen) -> tuple[bool, str, float]:
        with tempfile.TemporaryDirectory(prefix="trainsleuth-zoo-") as folder:
            return attached(specimen, Path(folder), options.wait)

    return table(chosen, one, 1)


if __name__ == "__main__":
    sys.exit(main())
