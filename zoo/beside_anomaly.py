"""Who changed this tensor: what TrainSleuth names for each program of zoo/autograd, and beside it what torch's anomaly detection says.

    python zoo/beside_anomaly.py [PATTERN…]

Each program is run under `trainsleuth run` and, by itself, under `torch.autograd.set_detect_anomaly(True)`. A line counts as named when it
is one of the guilty lines of case.toml; anomaly detection gets credit for any line of the program in its traceback of the forward.
"""

from __future__ import annotations

import fnmatch
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import tomllib
from check import ZOO, observe

KINDS = ("modified-in-place", "silently-modified", "step-between-backwards", "leaf-modified", "graph-freed")
ANOMALY = "import runpy, sys, torch; torch.autograd.set_detect_anomaly(True); sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
LIMIT = 180


def by_trainsleuth(script: Path) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="trainsleuth-zoo-") as folder:
        report, _ = observe(script, Path(folder))
    return [where["code"] for finding in report["findings"][:1] for where in finding["where"]]


def by_anomaly(script: Path) -> tuple[list[str], str]:
    """Lines of the program in the traceback of the forward call, and the error."""
    done = subprocess.run([sys.executable, "-c", ANOMALY, str(script)], cwd=script.parent, capture_output=True, text=True, timeout=LIMIT)
    forward = done.stderr.partition("Traceback of forward call that caused the error")[2].partition("\n\n")[0]
    named = re.findall(rf'File "{re.escape(str(script))}", line (\d+)', forward)
    lines = script.read_text(encoding="utf-8").splitlines()
    last = done.stderr.strip().splitlines()[-1] if done.returncode else ""
    return [lines[int(number) - 1].strip() for number in named], last.partition(": ")[2][:70] or "nothing is raised"


def main() -> int:
    patterns = sys.argv[1:] or ["*"]
    ours = theirs = 0
    homes = [home for home in sorted((ZOO / "autograd").iterdir()) if home.name.partition("--")[0] in KINDS]
    homes = [home for home in homes if any(fnmatch.fnmatch(home.name, f"*{pattern}*") for pattern in patterns)]
    for home in homes:
        guilty = {" ".join(line.split()) for line in tomllib.loads((home / "case.toml").read_text(encoding="utf-8"))["guilty"]}
        mine = [" ".join(line.split()) for line in by_trainsleuth(home / "sick.py")]
        named, error = by_anomaly(home / "sick.py")
        peer = [" ".join(line.split()) for line in named]
        right, peer_right = any(line in guilty for line in mine), any(line in guilty for line in peer)
        ours, theirs = ours + right, theirs + peer_right
        print(f"{home.name:<40} trainsleuth {'names it' if right else 'misses'}: {(mine or ['-'])[0][:60]}", flush=True)
        print(f"{'':<40} anomaly     {'names it' if peer_right else 'misses'}: {(peer or ['-'])[-1][:60]}   ({error})", flush=True)
    print(f"{len(homes)} programs: trainsleuth names the guilty line in {ours}, detect_anomaly in {theirs}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
