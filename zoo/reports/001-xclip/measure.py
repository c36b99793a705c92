"""Runs main.py once per hypothesis and prints what its log says, as the table of docs/report-001.md."""

import re
import resource
import subprocess
import sys

HYPOTHESES = [
    "",
    "SWITCH.BUILDER_EVAL true",
    "SWITCH.NO_TRAIN_CALL true",
    "SWITCH.BUILDER_EVAL true SWITCH.NO_TRAIN_CALL true",
    "SWITCH.FREEZE_TOO_MUCH true",
    "SWITCH.ACCUM original",
    "SWITCH.ACCUM recommended",
    "SWITCH.ACCUM every",
    "SWITCH.LABEL one_hot",
    "SWITCH.LABEL off_by_one",
    "SWITCH.LABEL constant",
    "SWITCH.WARMUP in_updates",
    "SWITCH.WARMUP never_ends",
    "TRAIN.LR 8.0e-6",
    "SWITCH.HALF_LOSS true",
    "SWITCH.HALF_LOSS true TRAIN.LR 8.0e-6",
    "SWITCH.HALF_LOSS true SWITCH.FREEZE_TOO_MUCH true",
    "SWITCH.HALF_LOSS true SWITCH.WARMUP never_ends",
    "SWITCH.UNIFORM scale",
    "SWITCH.UNIFORM text",
    "SWITCH.UNIFORM scale SWITCH.HALF_LOSS true",
    "SWITCH.UNIFORM text SWITCH.HALF_LOSS true",
    "SWITCH.UNIFORM scale SWITCH.HALF_LOSS true TRAIN.AMP_DTYPE float16",
    "SWITCH.UNIFORM text SWITCH.HALF_LOSS true TRAIN.AMP_DTYPE float16",
    "SWITCH.UNIFORM scale SWITCH.HALF_LOSS true TRAIN.LR 8.0e-6",
    "SWITCH.UNIFORM scale SWITCH.HALF_LOSS true TRAIN.AMP_DTYPE float16 TRAIN.LR 8.0e-6",
    "SWITCH.UNIFORM scale SWITCH.HALF_LOSS true TRAIN.LR 0.0013",
    "SWITCH.UNIFORM scale SWITCH.HALF_LOSS true TRAIN.AMP_DTYPE float16 TRAIN.LR 0.0013",
    "SWITCH.FRAME_MASK inverted",
    "SWITCH.FRAME_MASK inverted SWITCH.NAN_GUARD true",
    "SWITCH.FRAME_MASK inverted SWITCH.NAN_GUARD true SWITCH.HALF_LOSS true",
    "SWITCH.FRAME_MASK inverted SWITCH.NAN_GUARD true SWITCH.HALF_LOSS true TRAIN.AMP_DTYPE float16",
]


def measure(opts: str) -> str:
    command = [sys.executable, "main.py", "--config", "configs/xclip-12.yaml", "--opts", "PRINT_FREQ", "1", *opts.split()]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    log = subprocess.run(command, capture_output=True, text=True).stdout
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    lines = re.findall(r"tot_loss (\S+) \((\S+)\)", log)
    distinct = len({value for pair in lines for value in pair})
    (first, _), (last, average) = lines[0], lines[-1]
    acc1, acc5, mean_ap = re.findall(r"Acc@1 (\S+) Acc@5 (\S+) mAP (\S+)", log)[-1]
    return f"| `{opts or 'none'}` | {first} | {last} ({average}) | {distinct} | {acc1} | {acc5} | {mean_ap} | {seconds:.0f} |"


def main() -> None:
    print("| switches | first | last (average) | distinct figures | Acc@1 | Acc@5 | mAP | CPU s |")
    print("|---|---|---|---|---|---|---|---|")
    for opts in HYPOTHESES:
        if all(word in opts for word in sys.argv[1:]):
            print(measure(opts), flush=True)


if __name__ == "__main__":
    main()
