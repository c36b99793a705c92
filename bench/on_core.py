"""Runs a command on one core: CORE COMMAND… Prints the CPU seconds that it and its children used, after its own output."""

from __future__ import annotations

import os
import resource
import subprocess
import sys


def main() -> None:
    os.sched_setaffinity(0, {int(sys.argv[1])})
    subprocess.run(sys.argv[2:], check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(used.ru_utime + used.ru_stime)


if __name__ == "__main__":
    main()
