"""How fast an event file of 100,000 scalars is read, beside TensorBoard's own EventAccumulator, and whether the numbers are the same.

python bench/reading_tensorboard.py [SCALARS] [REPEATS]

Both read the same file in turns, in one process; time is that of the processor, which a busy machine disturbs less than the clock.
"""

from __future__ import annotations

import math
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from trainsleuth.readers import tensorboard

Points = dict[str, list[tuple[int, str]]]
NAMES = ("train/loss", "train/accuracy", "lr", "grad_norm")


def write(folder: Path, scalars: int) -> Path:
    from torch.utils.tensorboard import SummaryWriter

    dice = random.Random(0)
    with SummaryWriter(str(folder)) as writer:
        for index in range(scalars):
            step = index // len(NAMES)
            writer.add_scalar(NAMES[index % len(NAMES)], math.exp(-step / 5000) + dice.random() / 10, step)
    (path,) = folder.iterdir()
    return path


def ours(path: Path) -> Points:
    found: Points = {}
    for fact in tensorboard.read(path):
        if fact["k"] == "points":
            found.setdefault(fact["name"], []).extend(zip(fact["steps"], map(repr, fact["values"])))
    return found


def theirs(path: Path) -> Points:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    reader = EventAccumulator(str(path), size_guidance={"scalars": 0}, purge_orphaned_data=False)
    reader.Reload()
    return {tag: [(event.step, repr(event.value)) for event in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}


def timed(read: Callable[[Path], Points], path: Path) -> tuple[float, Points]:
    began = time.process_time()
    found = read(path)
    return time.process_time() - began, found


def main() -> None:
    scalars = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), scalars)
        timed(theirs, path)  # its imports
        rows = [(timed(ours, path), timed(theirs, path)) for _ in range(repeats)]
        size = path.stat().st_size / 1e6
    mine, reference = min(row[0][0] for row in rows), min(row[1][0] for row in rows)
    print(f"{scalars:,} scalars, {size:.1f} MB, best of {repeats}")
    print(f"trainsleuth        {mine:.3f} s")
    print(f"EventAccumulator   {reference:.3f} s   {reference / mine:.1f} times as long")
    print("the same numbers" if all(row[0][1] == row[1][1] for row in rows) else "THE NUMBERS DIFFER")


if __name__ == "__main__":
    main()
