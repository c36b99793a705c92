"""Runs a command on one core: CORE COMMAND…"""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.sched_setaffinity(0, {int(sys.argv[1])})
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
