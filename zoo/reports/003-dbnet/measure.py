"""Runs main.py once per setting and seed, and prints the table of README.md: python measure.py [WORD...] (only rows with every word)"""

import os
import re
import subprocess
import sys
from pathlib import Path
from statistics import mean

SETTINGS = [
    "trainer.precision=32-true",
    "trainer.precision=bf16-mixed",
    "trainer.precision=16-mixed",
    "trainer.precision=16-mixed model.step_function=sigmoid",
]
SEEDS = (0, 1)


def measure(setting: str) -> str:
    folder = Path(__file__).resolve().parent
    found, seconds = [], []
    for seed in SEEDS:
        log = subprocess.run(
            [sys.executable, "main.py", *setting.split(), f"trainer.seed={seed}"],
            cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
        ).stdout  # fmt: skip
        end = re.search(r"hmean (\S+) after (\S+) s", log)
        found.append(float(end[1]))
        seconds.append(float(end[2]))
    return f"| `{setting}` | {' '.join(f'{value:.3f}' for value in found)} | {mean(found):.3f} | {mean(seconds):.0f} |"


def main() -> None:
    print("| switches | H-mean, two seeds | mean | s |")
    print("|---|---|---|---|")
    for setting in SETTINGS:
        if all(word in setting for word in sys.argv[1:]):
            print(measure(setting), flush=True)


if __name__ == "__main__":
    main()
