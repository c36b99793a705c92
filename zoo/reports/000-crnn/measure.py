"""Runs main.py once per hypothesis about the accuracy and prints what its log says, as a table of README.md.

    python measure.py [WORD...]      only rows whose switches contain every word
"""

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

HYPOTHESES = [
    "MODEL.NAME crnn",
    "MODEL.NAME crnn SWITCH.INPLACE_RELU true",
    "MODEL.NAME crnn SWITCH.NORM false",
    "MODEL.NAME attention",
    "MODEL.NAME efficient",
    "MODEL.NAME efficient SWITCH.INPLACE_RELU true",
    "MODEL.NAME efficient SWITCH.EFFICIENT no_pointwise",
    "MODEL.NAME efficient SWITCH.NORM false",
    "MODEL.NAME efficient SWITCH.EFFICIENT no_pointwise SWITCH.NORM false",
    "MODEL.NAME efficient SWITCH.EFFICIENT strided TRAIN.EPOCHS 12",
    "MODEL.NAME efficient SWITCH.EFFICIENT strided_rows",
    "MODEL.NAME crnn TRAIN.LR 0.0005",
    "MODEL.NAME crnn TRAIN.LR 0.0005 SWITCH.NORM false",
    "MODEL.NAME attention TRAIN.LR 0.0005",
    "MODEL.NAME efficient TRAIN.LR 0.0005",
    "MODEL.NAME efficient TRAIN.LR 0.0005 SWITCH.INPLACE_RELU true",
    "MODEL.NAME efficient TRAIN.LR 0.0005 SWITCH.NORM false",
    "MODEL.NAME efficient TRAIN.LR 0.0005 SWITCH.NORM false TRAIN.EPOCHS 12",
    "MODEL.NAME crnn SEED 1",
    "MODEL.NAME crnn SEED 2",
    "MODEL.NAME efficient SEED 1",
    "MODEL.NAME efficient SEED 2",
    "MODEL.NAME efficient SWITCH.EFFICIENT no_pointwise SEED 1",
    "MODEL.NAME efficient SWITCH.EFFICIENT no_pointwise SEED 2",
]


def measure(opts: str) -> str:
    folder = Path(__file__).resolve().parent
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    log = subprocess.run(
        [sys.executable, "main.py", "--opts", *opts.split()],
        cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
    ).stdout  # fmt: skip
    cpu = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    epochs = re.findall(r"loss (\S+) CER (\S+) accuracy (\S+)", log)
    losses = " ".join(f"{float(loss):.2f}" for loss, _, _ in epochs)
    rates = " ".join(f"{100 * float(rate):.1f}" for _, rate, _ in epochs)
    return f"| `{opts.removeprefix('MODEL.NAME ')}` | {losses} | {rates} | {float(epochs[-1][2]):.2f} | {cpu:.0f} |"


def main() -> None:
    print("| model and switches | loss, epoch by epoch | CER in % | lines right | CPU s |")
    print("|---|---|---|---|---|")
    for opts in HYPOTHESES:
        if all(word in opts for word in sys.argv[1:]):
            print(measure(opts), flush=True)


if __name__ == "__main__":
    main()
