"""Runs main.py once per hypothesis of the report and prints the last line of its log or its error."""

import os
import subprocess
import sys
from pathlib import Path

SETTINGS = [
    "",
    "LOSS.CHARBONNIER.DELTA 0",
    "LOSS.CHARBONNIER.DELTA 0 SWITCH.CLAMP_BEFORE_LOSS true",
    "LOSS.CHARBONNIER.DELTA 0 SWITCH.STOP_ON_NAN true",
    "SWITCH.SPIKE_NORM max",
    "SWITCH.SPIKE_NORM max TRAIN.OPTIM.LR 0.0001 TRAIN.MAX_GRAD_NORM 0.1",
    "SWITCH.PAD_MASK keys_and_queries",
    "TRAIN.MIXED_PRECISION true",
    "TRAIN.MIXED_PRECISION true SWITCH.VGG_RANGE bytes",
    "SWITCH.VGG_RANGE bytes",
    "TRAIN.OPTIM.LR 10 TRAIN.MAX_GRAD_NORM 0",
    "SWITCH.DROP_PATH_RNG python",
    "SWITCH.DROP_PATH_RNG python MODEL.CHECKPOINT reentrant",
    "SWITCH.SPLIT_NAME lower_case",
    "DATA.FRAMES 4",
    "SWITCH.CHANNELS_LAST all",
    "SWITCH.CHANNELS_LAST conv_only",
    "TRAIN.COMPILE_MODEL true TRAIN.EPOCHS 1",
    "TRAIN.COMPILE_MODEL true TRAIN.EPOCHS 1 MODEL.CHECKPOINT none",
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
