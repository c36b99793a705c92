"""What exactly is run: the user's command, the Python of the active environment, the environment that carries the probes."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import _trainsleuth_inside

INJECT = Path(_trainsleuth_inside.__file__).resolve().parent / "inject"
NETWORK = ("nfs", "nfs4", "cifs", "smb3", "lustre", "beegfs", "gpfs", "ceph", "fuse.sshfs", "9p", "glusterfs")


class CommandError(Exception):
    """Why a command cannot be run, in a sentence."""


def resolve(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The command to execute. A `.py` file is run by the Python of the active environment."""
    if not words:
        raise CommandError("nothing to run: give a command after --, as in `trainsleuth run -- python train.py`.")
    first = words[0]
    if first.endswith(".py"):
        if not Path(first).is_file():
            raise CommandError(f"there is no file {first}.")
        return [active_python(environment), *words]
    found = shutil.which(first, path=environment.get("PATH"))
    if found is None:
        raise CommandError(f"there is no command {first}.")
    if Path(first).name.startswith("python"):
        script = next((word for word in words[1:] if not word.startswith("-")), None)
        if script is not None and script.endswith(".py") and words[1] == script and not Path(script).is_file():
            raise CommandError(f"there is no file {script}.")
    return list(words)


def active_python(environment: Mapping[str, str]) -> str:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        folder = environment.get(variable)
        if folder and (python := Path(folder) / "bin" / "python").is_file():
            return str(python)
    if sys.prefix != sys.base_prefix and importlib.util.find_spec("torch") is not None:
        return sys.executable  # no environment is active, and ours is one of the user's: it was called by its path
    for name in ("python", "python3"):
        if found := shutil.which(name, path=environment.get("PATH")):
            return found
    raise CommandError("no Python was found on the PATH.")


def environment_for(case: Path, beats: Path, budget: float, base: Mapping[str, str]) -> dict[str, str]:
    """The program's environment plus what lets the probes in."""
    changed = dict(base)
    inherited = base.get("PYTHONPATH")
    changed["PYTHONPATH"] = f"{INJECT}{os.pathsep}{inherited}" if inherited else str(INJECT)
    changed["TRAINSLEUTH_CASE"] = str(case)
    changed["TRAINSLEUTH_BEATS"] = str(beats)
    changed["TRAINSLEUTH_BUDGET"] = str(budget)
    return changed


def on_network(folder: Path) -> bool:
    """Whether a folder lies on a network file system, where a memory-mapped page is no good."""
    best, kind = "", ""
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    for line in mounts.splitlines():
        parts = line.split()
        if len(parts) > 2 and str(folder).startswith(parts[1]) and len(parts[1]) > len(best):
            best, kind = parts[1], parts[2]
    return kind in NETWORK
