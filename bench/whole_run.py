"""One workload as a program of its own: WORKLOAD STEPS [WHEN]. Prints the seconds of its training loop as JSON.

The loop begins at WHEN (seconds since 1970), so that two programs can begin together. Where its tensors come to lie in memory makes a
small step some percent quicker or slower, and one more import moves them all: so each run stirs its memory at random before it begins,
and what is left of that is noise, not a bias.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path

import torch
from workloads import workload


def main() -> None:
    torch.set_num_threads(1)
    kept = _stirred()
    step = workload(sys.argv[1])
    if len(sys.argv) > 3:
        time.sleep(max(0.0, float(sys.argv[3]) - time.time()))
    beside, cpu = _cpu_of(os.getppid()), time.process_time()
    for _ in range(int(sys.argv[2])):
        step()
    cpu = time.process_time() - cpu
    del kept
    print(json.dumps({"cpu": cpu, "beside": _cpu_of(os.getppid()) - beside}))


def _stirred() -> list[object]:
    """Memory with holes of random sizes at random places; what it returns keeps them apart."""
    chance = random.SystemRandom()
    pieces: list[object] = [bytearray(int(2 ** chance.uniform(5, 15))) for _ in range(chance.randrange(200, 3000))]
    pieces += [torch.empty(chance.randrange(1, 64)) for _ in range(chance.randrange(50, 500))]
    chance.shuffle(pieces)
    del pieces[::2]
    return pieces


def _cpu_of(pid: int) -> float:
    """The CPU seconds that a process has used: of the one that started us, which is the supervisor if there is one."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
