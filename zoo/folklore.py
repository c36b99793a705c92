"""Tries the popular suspicions of the field reports on their case studies: what everybody blames, and what an experiment says.

    python zoo/folklore.py [PATTERN…] [--budget 8m]

Each case study is run with the symptom of its report, then `prove --suspect` turns the knob that would take the suspected cause away. A
row passes when the suspicion is refuted. Ends with `N passed, N failed`.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path

REPORTS = Path(__file__).resolve().parent / "reports"
LIMIT = 1800
HANGS = ("SWITCH.OMP_THREAD_LIMIT", "2", "NUM_THREADS", "4", "SWITCH.INPLACE_RELU", "true")
STAGNATES = ("MODEL.NAME", "efficient", "SWITCH.NORM", "false", "TRAIN.LR", "0.0005", "SWITCH.INPLACE_RELU", "true", "TRAIN.EPOCHS", "1")
FLAT = ("--config", "configs/xclip-12.yaml", "--opts", "SWITCH.UNIFORM", "text", "SWITCH.HALF_LOSS", "true", "SWITCH.ACCUM", "original",
        "TRAIN.EPOCHS", "1")  # fmt: skip


@dataclass(frozen=True)
class Claim:
    words: str
    study: str
    arguments: tuple[str, ...]
    knob: str
    standing: bool = False
    windows: int = 0  # of a trial; 0: as many as `prove` takes


CLAIMS = (
    Claim("in-place ReLU before a CTC loss makes backward hang", "000-crnn", ("--opts", *HANGS), "inplace-off", standing=True),
    Claim("in-place ReLU makes EfficientCRNN stagnate", "000-crnn", ("--opts", *STAGNATES), "inplace-off"),
    Claim("zero_grad is not called before the first step", "001-xclip", FLAT, "clear-every-step", windows=40),
    Claim("accumulated gradients are cleared at the wrong time", "001-xclip", FLAT, "clear-only-after-step", windows=40),
    Claim("the learning rate is too small", "001-xclip", FLAT, "learning-rate", windows=40),
    Claim("Lightning forgets the gradient scaler", "003-dbnet", ("trainer.precision=16-mixed",), "scaler-on"),
)


def trainsleuth(folder: Path, *words: str) -> None:
    command = [sys.executable, "-m", "trainsleuth", *words]
    subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT, check=False)


def settle(claim: Claim, budget: str) -> tuple[str, str]:
    """The verdict on a claim, and why."""
    with tempfile.TemporaryDirectory(prefix="trainsleuth-zoo-") as name:
        study, case = Path(name) / claim.study, str(Path(name) / "case")
        shutil.copytree(REPORTS / claim.study, study, ignore=shutil.ignore_patterns("__pycache__"))
        options = ("--hang-after", "6", "--on-hang", "kill") if claim.standing else ()
        program = (sys.executable, "main.py", *claim.arguments)
        trainsleuth(study, "run", "--quiet", "--case", case, *options, "--", *program)
        length = ("--windows", str(claim.windows)) if claim.windows else ()
        trainsleuth(study, "prove", case, "--suspect", claim.knob, "--budget", budget, *length)
        report = json.loads((Path(case) / "report.json").read_text(encoding="utf-8"))
    said = [row for row in report["trials"] if row.get("cause") == f"knob/{claim.knob}" and "verdict" in row]
    return (said[-1]["verdict"], said[-1]["line"]) if said else ("not tried", "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*")
    parser.add_argument("--budget", default="8m")
    options = parser.parse_args()
    chosen = [claim for claim in CLAIMS if not options.patterns or any(fnmatch.fnmatch(claim.words, f"*{p}*") for p in options.patterns)]
    failed = 0
    for claim in chosen:
        began = time.monotonic()
        try:
            verdict, why = settle(claim, options.budget)
        except (OSError, ValueError, subprocess.SubprocessError) as problem:
            verdict, why = "not tried", str(problem)
        failed += verdict != "refuted"
        print(f"{verdict:<14} {claim.words}   (report {claim.study[:3]}, knob {claim.knob}, {time.monotonic() - began:.0f} s)", flush=True)
        print(textwrap.fill(why, 120, initial_indent=" " * 15, subsequent_indent=" " * 15), flush=True)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
