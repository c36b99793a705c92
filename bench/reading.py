"""How fast what a run left behind is read, on one core, and with how much memory.

python bench/reading.py [MEGABYTES [LAYOUT ...]]      text logs of this size (1000 by default) in several layouts, or in those named,
                                                      read into the chart that rules judge

Each file is read in a process of its own, whose peak of memory is taken; the small file beside the large one shows that it does not grow.
Time is given twice: by the clock, and of the processor, which a busy machine disturbs less.
"""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SMALL = 20
Lines = Callable[[int, random.Random], str]


def vision(index: int, rng: random.Random) -> str:
    epoch, batch = divmod(index * 10, 1820)
    loss = 6.9 * math.exp(-index / 3e5) + rng.random() * 0.1
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(1_760_870_300 + index))
    return (
        f"[{stamp}] Train: [{epoch}/30000][{batch}/1820]\teta 0:05:00 lr {1e-4 * (1 + math.cos(index / 1e6)):.9f}"
        f"\ttime 0.5{rng.randrange(999):03d} (0.5512)\tloss {loss:.4f} ({loss:.4f})\tgrad_norm {1 + rng.random():.4f} (1.2000)\tmem 3000MB\n"
    )


def prints(index: int, rng: random.Random) -> str:
    return f"epoch={index // 1000} step={index} loss={rng.random():.4f} acc={rng.random():.4f} lr=0.000100\n"


def dictionaries(index: int, rng: random.Random) -> str:
    loss, norm = rng.random(), rng.random()
    return f"{{'loss': {loss:.4f}, 'grad_norm': {norm:.4f}, 'learning_rate': 4.9{index % 1000:03d}e-05, 'epoch': {index / 1000:.2f}}}\n"


def json_lines(index: int, rng: random.Random) -> str:
    train = {"loss": round(rng.random(), 5), "acc": round(rng.random(), 4)}
    return json.dumps({"step": index, "time": 1.7e9 + index, "train": train, "lr": 0.001}) + "\n"


def columns(index: int, rng: random.Random) -> str:
    head = "step,epoch,train_loss,val_loss,lr\n" if index == 0 else ""
    return f"{head}{index},{index // 1000},{rng.random():.6f},{rng.random():.6f},0.0001\n"


def bars(index: int, rng: random.Random) -> str:
    """tqdm, drawn over itself with carriage returns."""
    epoch, batch = divmod(index, 1000)
    full, left = batch // 50, (1000 - batch) // 2
    times = f"{batch // 120:02d}:{batch // 2 % 60:02d}<{left // 60:02d}:{left % 60:02d}"
    bar = f"{batch // 10:3d}%|{'█' * full}{' ' * (20 - full)}| {batch}/1000 [{times}"
    return f"Epoch {epoch}: {bar}, {2 + rng.random():5.2f}it/s, loss={rng.random():.4f}, lr=0.0001]" + ("\n" if batch == 999 else "\r")


def mixed(index: int, rng: random.Random) -> str:
    """Several layouts in one file, with other lines between them."""
    part = index % 20
    if part == 19:
        return f"[val] epoch {index // 1000} val_loss {rng.random():.4f} val_acc {rng.random() * 100:.2f}%\n"
    if part in (5, 13):
        return f"INFO:root:checkpoint saved to runs/exp{index % 7}/ckpt-{index}.pt\n"
    if part == 7:
        return "  warnings.warn('something old')\n"
    return dictionaries(index, rng) if part > 14 else vision(index, rng)


def chatter(index: int, rng: random.Random) -> str:
    """A log of which one line in five is about the training."""
    if index % 5 == 0:
        return prints(index, rng)
    words = ("worker", "loading", "shard", "from", "the", "bucket", "prefetch", "queue", "is", "ready", "at", "host")
    return f"INFO data.loader {' '.join(rng.choices(words, k=9))} part-{rng.randrange(10**6):06d}.tar\n"


LAYOUTS: dict[str, Lines] = {
    "vision, stamped": vision, "key=value": prints, "dictionaries": dictionaries, "JSON lines": json_lines, "columns": columns, "bars": bars,
    "mixed": mixed, "much chatter": chatter,
}  # fmt: skip


def write(path: Path, lines: Lines, megabytes: int) -> None:
    rng = random.Random(0)
    index = 0
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < megabytes * 1_000_000:
            file.write("".join(lines(index + at, rng) for at in range(20_000)))
            index += 20_000


def measure(path: Path) -> dict[str, float]:
    """Read one file, in this process."""
    import resource

    from trainsleuth.case.record_chart import RecordChart
    from trainsleuth.readers import text

    source = RecordChart().source("a", str(path), True)
    clock, processor = time.perf_counter(), time.process_time()
    for fact in text.read(path):
        source.absorb(fact)
    size = path.stat().st_size / 1e6
    return {
        "values": source.points,
        "clock": size / (time.perf_counter() - clock),
        "processor": size / (time.process_time() - processor),
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def apart(path: Path) -> dict[str, float]:
    done = subprocess.run([sys.executable, __file__, "--measure", str(path)], stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def text_logs(megabytes: int, layouts: list[str]) -> None:
    print(f"{'text log':<18} {'MB':>6} {'values':>12} {'MB/s':>8} {'MB/s of processor':>18} {'peak MB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for name in layouts:
            lines = LAYOUTS[name]
            for size in (SMALL, megabytes):
                path = Path(folder) / "run.log"
                write(path, lines, size)
                row = apart(path)
                speeds = f"{row['clock']:>8.1f} {row['processor']:>18.1f}"
                print(f"{name:<18} {size:>6} {row['values']:>12,.0f} {speeds} {row['memory']:>8.0f}", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(Path(sys.argv[2]))))
        return
    text_logs(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, sys.argv[2:] or list(LAYOUTS))


if __name__ == "__main__":
    main()
