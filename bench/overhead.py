"""What watching costs: steps that alternate between bare and watched, paired whole runs, start-up, and the peers beside it.

    python bench/overhead.py [--quick] [--only steps,runs,startup,peers] [--workloads mlp,cnn,transformer]

A ratio of 1.010 means that watching costs 1 %. The control compares bare steps with bare steps in the same way: what it shows is
noise. Step times are thread CPU time on one thread; intervals are 95 % bootstrap intervals. `median` is the usual step, `mean`
counts the rare closely watched ones too and is what the target is held against. The first windows, which are watched most closely,
are left out here and show in the whole runs. Ends with 1 if a target was surely missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from workloads import SMALLEST, STEP_SECONDS, TARGETS, WORKLOADS

from trainsleuth.supervise.command import environment_for

HERE = Path(__file__).resolve().parent
LIMIT = 600
BOOTSTRAPS = 400
GET_READY = 15.0  # seconds in which both sides of a pair have imported torch
RUNS = {"mlp": (8, 30.0), "cnn": (4, 90.0), "transformer": (4, 90.0)}  # pairs, seconds: what the first windows cost is spread over the run
# Whether a large tensor's memory is given back and fetched anew in each step (hundreds of page faults) hangs on which small
# piece happens to lie behind it. That made whole runs differ by ten percent, without us; so both sides keep what they have.
KEEP_MEMORY = {"GLIBC_TUNABLES": "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=8589934592"}
PEERS = {"anomaly": "torch.autograd.detect_anomaly", "torchmortem": "torchmortem (monitor, PyPI)"}
Pairs = list[tuple[float, float]]


@dataclass(frozen=True)
class Ratio:
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4f} [{self.low:.4f}, {self.high:.4f}]"


def of_medians(pairs: Pairs) -> float:
    """The median of the pairs' own ratios: a machine that changes its speed in between changes it for both sides."""
    return statistics.median(b / a for a, b in pairs)


def of_means(pairs: Pairs) -> float:
    """Untrimmed: the rare dear steps are part of the price, and cutting either side's slowest would favour the other."""
    return sum(b for _, b in pairs) / sum(a for a, _ in pairs)


def of_ratios(pairs: Pairs) -> float:
    """For sides that ran at the same time, and share what the machine did then."""
    return statistics.median(b / a for a, b in pairs)


def with_interval(pairs: Pairs, statistic: Callable[[Pairs], float]) -> Ratio:
    rng = random.Random(0)
    draws = sorted(statistic(rng.choices(pairs, k=len(pairs))) for _ in range(BOOTSTRAPS))
    return Ratio(statistic(pairs), draws[int(0.025 * BOOTSTRAPS)], draws[int(0.975 * BOOTSTRAPS) - 1])


def alternate(workload: str, seconds: float, what: str) -> Pairs:
    with tempfile.TemporaryDirectory(prefix="trainsleuth-bench-") as name:
        folder = Path(name)
        (folder / "facts").mkdir()
        (folder / "beats").mkdir()
        done = subprocess.run(
            [sys.executable, str(HERE / "alternate.py"), workload, str(seconds), what],
            env=environment_for(folder, folder / "beats", 0.01, os.environ),
            stdout=subprocess.PIPE, text=True, timeout=LIMIT, check=True,
        )  # fmt: skip
    times = json.loads(done.stdout)
    return list(zip(times["bare"], times["watched"]))


def sized(kind: str) -> str:
    """The workload with a batch whose step takes about as long as the promise is made for, on this machine."""
    batch = SMALLEST[kind]
    for _ in range(4):
        taken = _step_seconds(f"{kind}:{batch}")
        if taken > 0.8 * STEP_SECONDS[kind]:
            break
        batch = max(batch + 8, 8 * round(batch * STEP_SECONDS[kind] / taken / 8))
    print(f"  {kind}: batches of {batch}, {1e3 * taken:.2f} ms a step", flush=True)
    return f"{kind}:{batch}"


def steps(workloads: Sequence[str], seconds: float) -> list[str]:
    print("\nAlternating steps, watched against bare (thread CPU time)")
    print(f"  {'':<12} {'':<8} {'bare step':>10}  {'median':<26} {'mean':<26} target")
    missed = []
    for workload in workloads:
        for what in ("control", "watched"):
            pairs = alternate(workload, seconds, what)
            median, mean = with_interval(pairs, of_medians), with_interval(pairs, of_means)
            kind = workload.split(":")[0]
            bare = statistics.median(a for a, _ in pairs) * 1e3
            target = f"{TARGETS[kind]:.2f}" if what == "watched" else ""
            print(f"  {kind:<12} {what:<8} {bare:7.3f} ms  {median!s:<26} {mean!s:<26} {target}  n={len(pairs)}", flush=True)
            if what == "watched" and mean.low > TARGETS[kind]:
                missed.append(kind)
    return missed


def runs(workloads: Sequence[str], scale: float) -> list[str]:
    """Both sides run at the same time and share one core in turns, so that what the machine does meanwhile happens to both.

    Two pairs at a time, one on each core; which side is started first alternates. The CPU seconds of the loops are compared; to those
    of the watched side come the ones that its supervisor used during the loop. The control compares plain with plain. The layout of
    memory, which makes a small step some percent quicker or slower, is random on both sides, and none is given back during the run.
    """
    cores = sorted(os.sched_getaffinity(0))[:2]
    print("\nWhole runs, `trainsleuth run --quiet` against plain (both on the same core; CPU seconds of the training loop)")
    missed = []
    for workload in workloads:
        kind = workload.split(":")[0]
        pairs, seconds = RUNS[kind]
        count = int(seconds * scale / _step_seconds(workload))
        for what in ("control", "watched"):
            found: list[tuple[dict[str, float], dict[str, float]]] = []
            for index in range(0, pairs, len(cores)):
                with ThreadPoolExecutor(len(cores)) as pool:
                    orders = [(index // 2 + core) % 2 == 0 for core in cores]
                    found += pool.map(lambda core, first: _pair(workload, count, core, what == "watched", first), cores, orders)
            alone = with_interval([(a["cpu"], b["cpu"]) for a, b in found], of_ratios)
            both = with_interval([(a["cpu"], b["cpu"] + b["beside"]) for a, b in found], of_ratios)
            target = f"{TARGETS[kind]:.2f}" if what == "watched" else ""
            print(f"  {kind:<12} {what:<8} loop {alone!s:<26} with supervisor {both!s:<26} {target}  n={len(found)}, {count:,} steps", flush=True)
            if what == "watched" and both.low > TARGETS[kind]:
                missed.append(f"whole runs of {kind}")
    return missed


def _pair(workload: str, steps: int, core: int, watched: bool, watched_first: bool) -> tuple[dict[str, float], dict[str, float]]:
    begin = time.time() + GET_READY
    with ThreadPoolExecutor(2) as pool:
        sides = [pool.submit(_whole_run, workload, steps, core, side, begin) for side in ((watched, False) if watched_first else (False, watched))]
        first, second = (side.result() for side in sides)
    return (second, first) if watched_first else (first, second)


def _watching(folder: str) -> list[str]:
    return [sys.executable, "-m", "trainsleuth", "run", "--quiet", "--case", f"{folder}/case", "--"]


def _whole_run(workload: str, steps: int, core: int, watched: bool, begin: float) -> dict[str, float]:
    """The CPU seconds of the loop, and those that the supervisor used meanwhile."""
    program = [sys.executable, str(HERE / "whole_run.py"), workload, str(steps), str(begin)]
    with tempfile.TemporaryDirectory(prefix="trainsleuth-bench-") as folder:
        command = [*_watching(folder), *program] if watched else program
        pinned = [sys.executable, str(HERE / "on_core.py"), str(core), *command]
        done = subprocess.run(
            pinned, cwd=folder, env=os.environ | KEEP_MEMORY, stdout=subprocess.PIPE, text=True, timeout=LIMIT, check=True
        )
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found if watched else {**found, "beside": 0.0}


def _step_seconds(workload: str) -> float:
    """How long a step takes here; the first ones of a run, which take longer, are left out of the reckoning."""
    return statistics.median((_loop_seconds(workload, 260) - _loop_seconds(workload, 60)) / 200 for _ in range(3))


def _loop_seconds(workload: str, steps: int) -> float:
    command = [sys.executable, str(HERE / "whole_run.py"), workload, str(steps)]
    done = subprocess.run(command, env=os.environ | KEEP_MEMORY, stdout=subprocess.PIPE, text=True, timeout=LIMIT, check=True)
    return float(json.loads(done.stdout.strip().splitlines()[-1])["cpu"])


def startup(pairs: int) -> None:
    print('\nStart-up, `trainsleuth run -- python -c "import torch"` against plain')
    plain = [sys.executable, "-c", "import torch"]
    found: Pairs = []
    for index in range(pairs):
        with tempfile.TemporaryDirectory(prefix="trainsleuth-bench-") as folder:
            watched = [*_watching(folder), *plain]
            commands = [plain, watched] if index % 2 == 0 else [watched, plain]
            times = {command is watched: _seconds(command, folder) for command in commands}
        found.append((times[False], times[True]))
    before, after = (statistics.median(pair[side] for pair in found) for side in (0, 1))
    extra = statistics.median(b - a for a, b in found)
    print(f"  plain {before:.2f} s, watched {after:.2f} s: {extra:+.2f} s, ratio {of_medians(found):.3f}  n={pairs}", flush=True)


def _seconds(command: Sequence[str], folder: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT, check=True)
    return time.perf_counter() - began


def peers(workloads: Sequence[str], seconds: float) -> None:
    print("\nPeers against bare, alternating steps")
    for peer in PEERS:
        for workload in workloads:
            pairs = alternate(workload, seconds, peer)
            print(f"  {PEERS[peer]:<32} {workload:<16} median {with_interval(pairs, of_medians)}  n={len(pairs)}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the time, for a look")
    parser.add_argument("--only", default="steps,runs,startup,peers")
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    options = parser.parse_args()
    parts = options.only.split(",")
    scale = 0.25 if options.quick else 1.0
    load = os.getloadavg()[0]
    print(f"load average {load:.1f} on {os.cpu_count()} cores{' (not idle: read with care)' if load > 1 else ''}")
    workloads = [sized(kind) for kind in options.workloads.split(",")]
    missed: list[str] = []
    if "steps" in parts:
        missed = steps(workloads, 30 * scale)
    if "runs" in parts:
        missed += runs(workloads, scale)
    if "startup" in parts:
        startup(3 if options.quick else 5)
    if "peers" in parts:
        peers(workloads, 6 * scale)
    print(f"\nload average at the end {os.getloadavg()[0]:.1f}")
    if missed:
        print(f"over target: {', '.join(missed)}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
