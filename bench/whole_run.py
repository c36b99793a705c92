"""One workload as a program of its own: WORKLOAD STEPS. Prints the seconds of its training loop as JSON."""

from __future__ import annotations

import json
import sys
import time

import torch
from workloads import WORKLOADS


def main() -> None:
    torch.set_num_threads(1)
    step = WORKLOADS[sys.argv[1]]()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(int(sys.argv[2])):
        step()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"wall": wall, "cpu": cpu, "all_cpu": time.process_time()}))


if __name__ == "__main__":
    main()
