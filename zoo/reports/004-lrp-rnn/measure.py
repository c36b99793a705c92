"""Runs main.py once per switch and prints the last line of its log or its error."""

import os
import subprocess
import sys
from pathlib import Path

SETTINGS = [
    "",
    "SWITCH.LRP_STATE written",
    "SWITCH.STATE written",
    "SWITCH.STATE data",
    "SWITCH.RELU inplace",
    "SWITCH.FUNCTIONS legacy",
    "SWITCH.BACKWARD no_bias",
    "SWITCH.BACKWARD factor",
    "SWITCH.EXPLAIN same",
    "SWITCH.STEP_BEFORE_EXPLAIN true",
    "LRP.RULE epsilon",
]


def last_line(opts: str) -> str:
    done = subprocess.run(
        [sys.executable, "main.py", "--opts", *opts.split()],
        cwd=Path(__file__).resolve().parent, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    return (done.stderr if done.returncode else done.stdout).strip().splitlines()[-1]


if __name__ == "__main__":
    for setting in SETTINGS:
        print(f"{setting or '(default)'}: {last_line(setting)}", flush=True)
